"""The engine: which trials a loader is put through, many of them at once, and what comes of each."""

from __future__ import annotations

import collections
import dataclasses
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ...harness.contract.job import SOURCES, Contract
from ...harness.errors import HarnessError, LoaderError, UserError
from ...harness.processes.supervisor import Supervisor
from ...harness.trial.history import History
from ...harness.trial.spec import Topology, TrialSpec
from .. import checks, known, scenarios
from ..commands.options import Options
from ..judging import probe
from ..judging.verdict import Mark, Verdict, disturbance, judge
from ..report.model import Report, TrialResult
from ..scenarios.base import Scenario
from ..scenarios.disk import DiskScenario
from ..scenarios.topologies import topologies
from .artifacts import Artifacts, slug
from .calibration import Pace, pace_of
from .claims import Claims
from .corpora import Corpora
from .single import trial_result
from .trial_state import TrialState, merge, not_clean, stays_away

_CLEAN = "clean"
_CONFIRM = 2  # what is believed is confirmed: a failing trial is run this often
_WAITING_PER_BUSY = 16  # trials that mostly wait cost a processor little: run this many for each that computes
_BEGINNING_S = 1.0  # but to begin one costs as much as any other, for at least so long
_READABLE = 24  # letters of a trial's name in that of its folder: sockets in it may have paths of 107 bytes at most
_POLL_S = 0.2
_RESTARTS = 5  # of the zygote, without a trial that ended between them
_DISTURBED = 3  # so often a trial may be lost, or killed by the machine, until it is reported as that


class _UnderWay(NamedTuple):
    """One execution of a trial."""

    state: TrialState
    since: float
    """When it was begun."""
    alone: bool
    """Nothing else is begun while it runs."""


class Suite:
    """Runs the conformance suite over one loader.

    >>> with Suite("torch.utils.data:DataLoader", Options()) as suite:   # doctest: +SKIP
    ...     suite.start()
    ...     suite.prepare()
    ...     report = suite.run()

    Args:
        directory: the folder that is importable, besides what is installed.
        failures: where the folders of failing trials are kept, unless ``options.keep`` keeps all.
        shared: a folder through which several processes share one suite: each trial is run by the first that claims it.
        prefix: begins the names of kept folders, where several loaders share one.
    """

    def __init__(
        self,
        loader: str,
        options: Options,
        directory: str | Path = ".",
        *,
        failures: Path | None = None,
        shared: Path | None = None,
        prefix: str = "",
    ) -> None:
        self.loader = loader
        self._claims = Claims(shared) if shared is not None else None
        self.options = options
        self.directory = os.path.abspath(directory)
        self._artifacts = Artifacts(self.directory, options.keep, failures, prefix)
        self.contracts: dict[str, Contract] = {}
        self.sources: tuple[str, ...] = ()
        self._supervisor: Supervisor | None = None
        self._states: dict[str, TrialState] = {}
        self._queue: collections.deque[TrialState] = collections.deque()
        self._alone: collections.deque[TrialState] = collections.deque()
        self._under_way: dict[int, _UnderWay] = {}
        self._clean: dict[tuple[str, Topology], str] = {}
        self._pace: dict[tuple[str, Topology], Pace] = {}
        self._wanted: frozenset[str] | None = None
        self._enqueued = False
        self._folders = 0
        self._restarts = 0
        self._known = [entry for name in options.known for entry in known.load(known.find(str(name)))]
        self._jobs = options.jobs or (os.cpu_count() or 1) + 1
        # Last: whoever is refused above leaves no folder behind.
        self._scratch = Path(tempfile.mkdtemp(prefix="badbatch-"))
        self._corpora = Corpora(self._scratch / "corpora")

    def __enter__(self) -> Suite:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way and remove what it wrote; failing trials that were kept stay."""
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def supervisor(self) -> Supervisor:
        """The boundary to the processes; there once :meth:`start` was called."""
        if self._supervisor is None:
            raise RuntimeError("Suite.start() has not been called")
        return self._supervisor

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python, torch, numpy and the loader's library."""
        return self.supervisor.versions

    @property
    def isolation(self) -> str:
        """``fork`` or ``spawn``."""
        return self.supervisor.isolation

    @property
    def isolation_why(self) -> str:
        """Why it is not ``fork``."""
        return self.supervisor.isolation_why

    def start(self) -> None:
        """Import the loader and lay out the trials.

        Raises:
            UserError: the loader, or an option, is wrong; in one line.
        """
        self._shapes()
        self._supervisor = self._started()
        self.lay_out(self._supervisor.sources, self._supervisor.contract)

    def _started(self) -> Supervisor:
        return Supervisor(self.loader, self.directory, self.options.isolation, scratch=self._scratch)

    def lay_out(self, sources: Sequence[str], contract: Callable[[str], Contract]) -> None:
        """Lay out the trials for a loader with these sources and declared contracts, without importing it.

        Raises:
            UserError: an option is wrong, or no source is one that the suite offers.
        """
        names, shapes = self._shapes()
        self.sources = tuple(source for source in sources if source in SOURCES)
        if not self.sources:
            raise LoaderError(f"{self.loader} declares only sources that the suite does not offer: {', '.join(sources)}")
        for source in self.sources:
            declared = self.contracts[source] = contract(source)
            for topology in shapes:
                for name in scenarios.names(source):
                    if name not in names:
                        continue
                    scenario = scenarios.find(name, source)
                    spec = self._spec(scenario, source, topology)
                    state = self._states[spec.id] = TrialState(spec, scenario.slow, wanted=self.options.repeat)
                    if reason := stays_away(declared, topology, scenario):
                        state.result = self._not_run(spec, reason)
        if not self._states:
            raise UserError(f"no selected scenario is put to {', '.join(self.sources)}: badbatch list scenarios shows them all")

    def _shapes(self) -> tuple[list[str], list[Topology]]:
        """The scenarios and topologies that the options select; refuses names that match nothing."""
        names = scenarios.select(scenarios.names(), self.options.scenarios, "scenario", self.options.not_scenarios)
        self._selected_checks()
        return names, topologies(self.options.workers, self.options.ranks, self.options.start_methods)

    def _not_run(self, spec: TrialSpec, reason: str) -> TrialResult:
        verdicts = tuple(
            Verdict(self.loader, spec.scenario, spec.source, spec.topology, name, Mark.NA, reason=reason)
            for name in self.checks_for(spec)
        )
        return TrialResult(spec, verdicts, 0.0, "not run", 0, 0, 0, 0)

    def _spec(self, scenario: Scenario, source: str, topology: Topology) -> TrialSpec:
        options = self.options
        batch_size = scenario.settings.get("batch_size", options.batch_size)
        samples = scenario.samples(options.samples, batch_size)
        settings: dict[str, Any] = {"batch_size": batch_size, **scenario.settings}
        if topology.ranks == 1:
            settings["lockstep"] = False
        if "step_s" in settings:
            settings["step_s"] = settings["step_s"] * options.timeout
        if isinstance(scenario, DiskScenario):
            settings |= self._corpora.question(scenario, source, options.samples, batch_size, options.seed)
        else:
            settings |= {"plan": scenario.plan(samples, batch_size), "samples": samples}
        return TrialSpec(
            loader=self.loader,
            directory=self.directory,
            scenario=scenario.name,
            source=source,
            topology=topology,
            contract=self.contracts[source],
            seed=options.seed,
            timeout_s=options.timeout if scenario.timed else 0.0,
            deadline_s=options.deadline,
            **settings,
        )

    def prepare(self) -> None:
        """Run the probes and complete the contracts.

        Raises:
            LoaderError: the loader cannot be held to anything: it cannot be built, iterated or read.
        """
        for source in self.sources:
            contract = self.contracts[source]
            workers = 0 if contract.workers is None or 0 in contract.workers else min(contract.workers)
            ranks = 1 if contract.ranks is None or 1 in contract.ranks else min(contract.ranks)
            damaged = self._spec(scenarios.find("one-bad", source), source, Topology(workers, ranks))
            history = self._probe(damaged)
            probe.must_be_usable(history)
            contract = probe.infer(history, contract)
            several = [n for n in self.options.ranks if n > 1 and (contract.ranks is None or n in contract.ranks)]
            if contract.tail is None and several:
                uneven = self._spec(scenarios.find("remainder-one", source), source, Topology(workers, several[0]))
                contract = probe.infer_tail(self._probe(dataclasses.replace(uneven, lockstep=False)), contract)
            self.contracts[source] = contract
        for state in self._states.values():
            state.spec = dataclasses.replace(state.spec, contract=self.contracts[state.spec.source])
            if state.result is not None:
                state.result = dataclasses.replace(state.result, spec=state.spec)

    def _probe(self, spec: TrialSpec) -> History:
        for attempt in range(_DISTURBED):
            folder = self._folder("probe")
            try:
                history = self.supervisor.run(spec, folder)
            except HarnessError:
                self._start_again()
                continue
            shutil.rmtree(folder, ignore_errors=True)
            if not disturbance(history) or attempt == _DISTURBED - 1:
                return history
        raise HarnessError(f"the process that runs the trials of {self.loader} was killed {_DISTURBED} times in the probe")

    def only(self, ids: Collection[str]) -> None:
        """Run no other trials than these, by id; to be called before the first is run."""
        self._wanted = frozenset(ids)

    def _enqueue(self) -> None:
        """Clean trials first, since they decide what the others are worth; then those that wait longest."""
        self._enqueued = True
        selected = [
            state
            for name, state in self._states.items()
            if state.result is None and (self._wanted is None or name in self._wanted)
        ]
        cells = {(state.spec.source, state.spec.topology) for state in selected}
        for source, topology in cells:
            spec = self._spec(scenarios.find(_CLEAN, source), source, topology)
            if not any(state.spec.id == spec.id for state in selected):
                selected.append(TrialState(spec, False))
        order = sorted(selected, key=lambda state: (state.spec.scenario != _CLEAN, not state.waits))
        for state in order:
            self._queue.extend([state] * state.wanted)

    def specs(self) -> list[TrialSpec]:
        """The trials that the options select, in the order of the report."""
        return [state.spec for state in self._states.values()]

    def checks_for(self, spec: TrialSpec) -> list[str]:
        """The ids of the selected checks that a trial exercises."""
        return [name for name in sorted(self._selected_checks()) if checks.registry()[name].exercised(spec)]

    def result(self, spec: TrialSpec) -> TrialResult:
        """The result of one trial; runs others meanwhile."""
        state = self._states[spec.id]
        while state.result is None:
            if state.elsewhere:
                self._fetch(state)
            self._advance()
        return state.result

    def judged(self, spec: TrialSpec) -> tuple[TrialResult, list[Verdict]]:
        """The result of one trial, and its verdicts with known failures applied."""
        result = self.result(spec)
        verdicts, _ = known.apply(list(result.verdicts), self._known)
        return result, list(verdicts)

    def header(self) -> dict[str, Any]:
        """The report without trials and verdicts, as JSON."""
        return self.report([]).to_json()

    def run(self, on_result: Callable[[TrialResult], None] | None = None) -> Report:
        """Run every trial and report."""
        told: set[str] = set()
        while len(told) < len(self._states):
            if any(state.result is None for state in self._states.values()):
                self._advance()
            for name, state in self._states.items():
                if state.result is not None and name not in told:
                    told.add(name)
                    if on_result is not None:
                        on_result(state.result)
        return self.report([state.result for state in self._states.values() if state.result is not None])

    def report(self, results: list[TrialResult]) -> Report:
        """The report over some results, with known failures applied."""
        verdicts = [verdict for result in results for verdict in result.verdicts]
        verdicts, stale = known.apply(verdicts, self._known)
        return Report(
            loader=self.loader,
            contracts=dict(self.contracts),
            versions=self.versions,
            seed=self.options.seed,
            trials=tuple(results),
            verdicts=tuple(verdicts),
            stale_known=tuple(stale),
            isolation=self.isolation,
            notes=tuple(note for note in (self.isolation_why, self._about_timeouts(results)) if note),
        )

    def _about_timeouts(self, results: list[TrialResult]) -> str:
        longer = {result.spec.topology: result.spec.timeout_s for result in results if result.spec.timeout_s > self.options.timeout}
        if not longer:
            return ""
        listed = ", ".join(f"{timeout:g} s with {topology}" for topology, timeout in longer.items())
        return f"the job's timeout is longer than {self.options.timeout:g} s where the first batch takes long: {listed}"

    def _advance(self) -> None:
        """Start what may be started, wait a moment, judge what has ended."""
        if not self._enqueued:
            self._enqueue()
        try:
            self._start_more()
            for number, folder in self.supervisor.finished(_POLL_S):
                self._restarts = 0
                self._judge(self._under_way.pop(number), folder)
        except HarnessError:
            self._start_again()

    def _start_again(self) -> None:
        """The zygote was killed: what was under way is lost, and the rest goes on in a new one.

        Raises:
            HarnessError: it has been killed too often.
        """
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise HarnessError(f"the process that runs the trials of {self.loader} was killed {self._restarts} times")
        lost = list(self.supervisor.folders().items())
        self.supervisor.close()
        self._supervisor = self._started()
        for number, folder in lost:
            if number in self._under_way:
                self._judge(self._under_way.pop(number), folder)

    def _claim(self, state: TrialState) -> bool:
        """Whether this process is the one to run a trial.

        A clean trial is never left to another: it is cheap, and this process's faulted trials wait for its own. Its
        record is kept by one of them all the same.
        """
        if self._claims is not None and not state.claimed:
            state.claimed = self._claims.claim(state.spec)
            state.keeps = state.claimed
            state.elsewhere = not state.claimed and state.spec.scenario != _CLEAN
        return not state.elsewhere

    def _fetch(self, state: TrialState) -> None:
        """The result of a trial that another process runs, if it is there; after too long a wait, run it here."""
        assert self._claims is not None
        found = self._claims.result(self.loader, state.spec)
        if found is not None:
            state.result = dataclasses.replace(found, spec=state.spec)
        elif self._claims.overdue(state.spec, _CONFIRM * state.wanted):
            state.elsewhere, state.keeps, state.claimed = False, True, True
            self._queue.extend([state] * state.wanted)

    def _start_more(self) -> None:
        """Fill the places: few for trials that compute, many for those that wait; all compute while they begin.

        A trial that is to be alone waits until all others were begun, and those under way have nothing to compute.
        """
        if any(run.alone for run in self._under_way.values()):
            return
        now = time.monotonic()
        busy = sum(self._computes(run.state, now - run.since) for run in self._under_way.values())
        places = self._jobs * _WAITING_PER_BUSY - len(self._under_way)
        postponed: list[TrialState] = []
        try:
            while self._queue and busy < self._jobs and places > 0:
                state = self._queue.popleft()
                if self._needs_clean(state.spec):
                    postponed.append(state)
                elif self._claim(state):
                    self._begin(state)
                    busy, places = busy + 1, places - 1
        finally:
            self._queue.extendleft(reversed(postponed))
        if self._alone and not self._queue and not busy:
            self._begin(self._alone.popleft(), alone=True)

    def _begin(self, state: TrialState, alone: bool = False) -> None:
        if not state.started:
            state.spec = self._paced(state.spec)
        spec = dataclasses.replace(state.spec, repeat=state.started)
        try:
            number = self.supervisor.start(spec, self._folder(spec.id))
        except HarnessError:  # the zygote has died: the trial was not begun, and must not be lost with it
            (self._alone if alone else self._queue).appendleft(state)
            raise
        state.started += 1
        self._under_way[number] = _UnderWay(state, time.monotonic(), alone)

    def _computes(self, state: TrialState, age: float) -> bool:
        pace = self._pace.get((state.spec.source, state.spec.topology), Pace())
        return not state.waits or age < max(_BEGINNING_S, pace.begin)

    def _needs_clean(self, spec: TrialSpec) -> bool:
        at_stake = bool(spec.plan) or spec.timeout_s > 0
        return spec.scenario != _CLEAN and at_stake and (spec.source, spec.topology) not in self._clean

    def _paced(self, spec: TrialSpec) -> TrialSpec:
        """The trial with a timeout that the loader's start does not use up, on this machine and as busy as it is."""
        pace = self._pace.get((spec.source, spec.topology), Pace())
        timeout = pace.timeout(spec.timeout_s, most=(spec.deadline_s - 1) / 2)
        if spec.timeout_s <= 0 or timeout == spec.timeout_s:
            return spec
        return dataclasses.replace(spec, timeout_s=timeout, step_s=spec.step_s * timeout / spec.timeout_s)

    def _folder(self, name: str) -> Path:
        self._folders += 1
        return self._scratch / f"{self._folders:05d}-{slug(name)[:_READABLE]}"

    def _judge(self, run: _UnderWay, folder: Path) -> None:
        state = run.state
        history = History.load(folder)
        spec = history.spec
        cell = (spec.source, spec.topology)
        if disturbance(history) and state.disturbed < _DISTURBED - 1:
            state.disturbed += 1
            # Alone, so that what disturbs it does not take others along; a clean trial is what the others wait for.
            (self._queue if spec.scenario == _CLEAN else self._alone).appendleft(state)
            shutil.rmtree(folder, ignore_errors=True)
            return
        if spec.scenario == _CLEAN and cell not in self._clean:
            self._clean[cell] = not_clean(history)
            self._pace[cell] = pace_of(history)
        kept = self._artifacts.name(spec)
        replay = f"badbatch replay {kept}" if kept is not None else ""
        verdicts = judge(history, clean=self._clean.get(cell, ""), replay=replay)
        failed = any(v.mark is Mark.FAIL and v.check in self._selected_checks() for v in verdicts)
        if failed and not run.alone and state.hurries:  # others beside it may have taken the time
            self._alone.append(state)
            shutil.rmtree(folder, ignore_errors=True)
            return
        state.runs.append((history, verdicts))
        if failed and state.wanted < _CONFIRM:
            state.wanted = _CONFIRM
            (self._alone if run.alone else self._queue).appendleft(state)
        failed_before = any(v.mark is Mark.FAIL for _, earlier in state.runs[:-1] for v in earlier)
        if failed or not failed_before:  # a passing repetition must not replace the record of the failure
            state.folder = self._artifacts.keep(folder, kept, failed, state.keeps) or state.folder
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if len(state.runs) == state.wanted:
            state.result = self._result(state)
            if self._claims is not None and spec.scenario != _CLEAN:  # that one each process has run for itself
                self._claims.tell(state.result)

    def _selected_checks(self) -> set[str]:
        return set(scenarios.select(list(checks.registry()), self.options.checks, "check", self.options.not_checks))

    def _result(self, state: TrialState) -> TrialResult:
        history, _ = state.runs[0]
        chosen = self._selected_checks()
        merged = [verdict for verdict in merge([verdicts for _, verdicts in state.runs]) if verdict.check in chosen]
        if state.folder is None:  # there is nothing left that could be run again
            merged = [dataclasses.replace(verdict, replay="") for verdict in merged]
        return dataclasses.replace(trial_result(history, merged, state.folder), spec=state.spec)


def check_loader(loader: str, **options: Any) -> Report:
    """Hold a loader to its promises, as a library call.

    Args:
        loader: ``pkg.module:attr``, or a factory that can be imported by its module and name.
        options: fields of :class:`~badbatch.conformance.commands.options.Options`.

    Raises:
        UserError: the loader, or an option, is wrong.
    """
    with Suite(name_of(loader), Options(**options)) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def name_of(loader: Any) -> str:
    """The ``pkg.module:attr`` of a factory.

    Raises:
        UserError: it has none, like a lambda or a function inside another: the trial could not import it.
    """
    if isinstance(loader, str):
        return loader
    module, name = getattr(loader, "__module__", None), getattr(loader, "__qualname__", None)
    if not module or not name or "<" in name or module == "__main__":
        raise UserError(
            f"{loader!r} cannot be imported by a name: define the factory at the top level of a module, "
            "or give its name as pkg.module:attr"
        )
    return f"{module}:{name}"
