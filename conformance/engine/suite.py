"""The suite: runs a loader in the trials that the options select, and judges each result."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ...harness.contract.job import Contract
from ...harness.errors import HarnessError, UserError, one_line
from ...harness.processes.supervisor import Supervisor
from ...harness.processes.temporary_folder import about_long_paths
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ...harness.trial.torn import UNWRITABLE
from .. import known
from ..diagnoses.comparing import compared
from ..judging.doubts import not_struck
from ..judging.verdict import Mark, Verdict
from ..options import Options
from ..report.model import Report
from ..report.result import TrialResult
from ..report.run import Run
from ..scenarios import find as find_scenario
from . import context, probing
from .artifacts import Artifacts, keep_pictures
from .claims import Claims
from .judge import judge
from .policy import CONFIRM, Next, Policy
from .pool import Done, Pool, Task
from .preparations import Preparations
from .questions import CLEAN, Questions
from .relating import consequences
from .relations import Relations, release
from .single import again, trial_result
from .trial_state import TrialState, merge, stays_away


class Suite:
    """Runs the conformance suite over one loader: :class:`Questions` select the trials, a :class:`Pool` runs them.

    >>> with Suite("torch.utils.data:DataLoader", Options()) as suite:   # doctest: +SKIP
    ...     suite.start()
    ...     suite.prepare()
    ...     report = suite.run()

    Args:
        directory: the folder that is importable, in addition to what is installed.
        failures: where the folders of failing trials are kept, unless ``options.keep`` keeps all.
        shared: a folder through which several processes share one suite: each trial is run by the first that claims it.
        prefix: begins the names of kept folders, for several loaders that share one.
        command: the command that started the run, for the report.
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
        command: str = "",
    ) -> None:
        self.loader = loader
        self.options = options
        self.directory = os.path.abspath(directory)
        self._run = Run.now(options.samples, options.batch_size, command)
        self.contracts: dict[str, Contract] = {}
        self._claims = Claims(shared) if shared is not None else None
        self._artifacts = Artifacts(self.directory, options.keep, failures, prefix)
        confirm = 1 if options.quick else CONFIRM
        self._policy = Policy(confirm)
        self._states: dict[str, TrialState] = {}
        self._tasks: dict[Task, TrialState] = {}
        self._wanted: frozenset[tuple[str, str]] | None = None
        self._enqueued = False
        self._boundary: Supervisor | None = None
        self._known = [entry for name in options.known for entry in known.load(known.find(str(name)))]
        # Last: if something above is refused, no folder is left behind.
        self._pool = Pool(loader, self.directory, options.isolation, sources=options.sources, jobs=options.jobs)
        self._questions = Questions(loader, options, self.directory, Preparations(self._pool.scratch / "corpora"))
        self._relations = Relations(self._questions, self._policy, self._artifacts, self._known, confirm)

    def __enter__(self) -> Suite:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the running trials and remove what they wrote; kept folders of failing trials stay."""
        self._pool.close()

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor, as it was when :meth:`start` was called; what it knows about the loader stays true."""
        if self._boundary is None:
            raise RuntimeError("Suite.start() has not been called")
        return self._boundary

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the loader is offered; known after the trials were laid out."""
        return tuple(self.contracts)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python, torch, numpy, and of the libraries that the loader's module imports."""
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
        self._questions.must_be_valid()
        supervisor = self._boundary = self._pool.start()
        self.lay_out(supervisor.sources, supervisor.contract)

    def lay_out(self, sources: Sequence[str], contract: Callable[[str], Contract]) -> None:
        """Lay out the trials for a loader with these sources and declared contracts, without importing it.

        Raises:
            UserError: an option is wrong, or the suite offers none of the sources.
        """
        self._questions.must_be_valid()
        self.contracts = {source: contract(source) for source in self._questions.sources(sources)}
        for spec, scenario in self._questions.trials(self.contracts):
            state = self._states[spec.id] = TrialState(spec, scenario, wanted=self.options.repeat)
            if reason := stays_away(spec.contract, spec.topology, scenario) or not_struck(spec):
                state.absent = Mark.NA, reason
        if not self._states:
            raise UserError(f"no selected scenario applies to {', '.join(self.sources)}: badbatch list scenarios shows them all")
        self._relations.lay_out(self._states)
        self._settle_absent()

    def _without(self, spec: TrialSpec, mark: Mark, reason: str, ended: str) -> TrialResult:
        """The result of a trial that has no history."""
        verdicts = tuple(
            Verdict(self.loader, spec.scenario, spec.source, spec.topology, name, mark, reason=reason)
            for name in self.checks_for(spec)
        )
        return TrialResult(spec, verdicts, 0.0, ended, 0, 0, 0, 0)

    def prepare(self) -> None:
        """Run the probes and complete the contracts.

        Raises:
            LoaderError: the loader cannot be judged: it cannot be built, iterated or read.
        """
        for source, contract in self.contracts.items():
            self.contracts[source] = probing.complete(source, contract, self._questions, self.options, self._probe)
        for state in (*self._states.values(), *self._relations.added.values()):
            spec = state.spec = dataclasses.replace(state.spec, contract=self.contracts[state.spec.source])
            if state.absent is None and (reason := stays_away(spec.contract, spec.topology, state.scenario)):
                state.absent = Mark.NA, reason  # by what was inferred
        self._settle_absent()

    def _settle_absent(self) -> None:
        """The results of the trials that are not run."""
        for state in self._states.values():
            if state.absent is not None and state.result is None:
                state.result = self._without(state.spec, *state.absent, "not run")
            elif state.result is not None:
                state.result = dataclasses.replace(state.result, spec=state.spec)

    def _probe(self, specs: Sequence[TrialSpec]) -> list[History]:
        """The histories of some trials, in their order.

        Raises:
            UserError: there is no space for their records.
        """
        try:
            found = {id(spec): history for spec, history in self._pool.run(specs)}
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise self._no_space(error.strerror or str(error)) from error
        for history in found.values():
            if history.torn:
                raise self._no_space(history.torn)
        return [found[id(spec)] for spec in specs]

    def _no_space(self, why: str) -> UserError:
        return UserError(f"the temporary folder {self._pool.scratch.parent} cannot be written to: {why}; TMPDIR names another")

    def only(self, wanted: Collection[tuple[str, str]]) -> None:
        """Run no other trials than these, and judge no other relations; to be called before the first is run.

        Args:
            wanted: (id of the trial, id of the check or relation).
        """
        self._wanted = frozenset(wanted)
        self._relations.only(self._states, self._wanted)

    def _enqueue(self) -> None:
        """Queue the selected trials, and the clean trial of each cell, whether it was selected or not."""
        self._enqueued = True
        trials = None if self._wanted is None else {name for name, _ in self._wanted}
        selected = [
            state for name, state in self._states.items() if state.result is None and (trials is None or name in trials)
        ]
        selected += self._relations.needed(selected)
        names = {state.spec.id for state in selected}
        for source, topology in dict.fromkeys((state.spec.source, state.spec.topology) for state in selected):
            spec = self._questions.named(CLEAN, source, topology, self.contracts[source])
            if spec.id not in names:
                selected.append(TrialState(spec, find_scenario(CLEAN, source), hidden=True))
        for state in selected:
            if not self._policy.blocked(state):
                self._submit(state, state.wanted)

    def _submit(self, state: TrialState, times: int = 1, *, alone: bool = False, first: bool = False) -> None:
        """Queue runs of a trial: clean ones first, since the others depend on them, then those that wait longest."""
        order = -2 if first else -1 if state.spec.scenario == CLEAN else 0 if state.waits else 1
        for _ in range(times):
            task = Task(lambda: None, waits=state.waits, alone=alone, order=order, gate=state.spec.scenario == CLEAN)
            task.begin = functools.partial(self._begin, state, task)
            self._tasks[task] = state
            self._pool.submit(task)

    def _begin(self, state: TrialState, task: Task) -> TrialSpec | None:
        """The next run of a trial; None if another process runs it, or it was cut."""
        if state.result is not None or state.over or not self._claim(state):
            del self._tasks[task]
            return None
        if not state.started:
            state.spec = self._policy.with_timeout(state.spec)
        task.begins_s = self._policy.begins_s(state.spec)
        state.started += 1
        return dataclasses.replace(state.spec, repeat=state.spec.repeat + state.started - 1)

    def specs(self) -> list[TrialSpec]:
        """The trials that the options select, in the order of the report."""
        return [state.spec for state in self._states.values()]

    def checks_for(self, spec: TrialSpec) -> list[str]:
        """The ids of the selected checks that a trial exercises, and of the relations that are asked of it."""
        state = self._states.get(spec.id)
        related = [] if state is None else [asked.relation.id for asked in state.asked]
        return sorted((*self._questions.checks_for(spec), *related))

    def result(
        self, spec: TrialSpec, within_s: float | None = None, on_progress: Callable[[], None] | None = None
    ) -> TrialResult:
        """The result of one trial; runs others meanwhile.

        Args:
            within_s: seconds after which the trial is cut and its result is inconclusive; None: only its own deadline
                counts.
            on_progress: called whenever a trial has ended.
        """
        state = self._states[spec.id]
        deadline = None if within_s is None else time.monotonic() + within_s
        while state.result is None:
            if deadline is not None and time.monotonic() >= deadline:
                self.cut(spec, f"a timeout of {within_s:g} s, given to pytest, ended it")
                break
            if state.elsewhere:
                self._fetch(state)
            self._borrow()
            if (self._advance() or state.result is not None) and on_progress is not None:
                on_progress()
            self._must_be_under_way(state)
        assert state.result is not None
        return state.result

    def cut(self, spec: TrialSpec, why: str) -> None:
        """End a trial that has no result yet, or do not start it: its result is inconclusive."""
        self._cut(self._states[spec.id], why)

    def _cut(self, state: TrialState, why: str) -> None:
        if state.result is not None or state.absent is not None:
            return
        if state.own is not None:  # only its relations still wait
            self._finish(state, self._relations.give_up(state, why))
            return
        for task in [task for task, of in self._tasks.items() if of is state]:
            del self._tasks[task]
            self._pool.drop(task)
        how = "not run to its end" if state.started or state.elsewhere else "not run"
        state.absent = Mark.INCONCLUSIVE, f"{how}: {why}"
        if not state.hidden:
            state.result = self._without(state.spec, *state.absent, "cut" if state.started else "not run")
            self._tell(state)
            self._connect(state)
        for waiting in self._policy.unseen(state.spec, why):
            self._submit(waiting, waiting.wanted)
        self._settle_others(state)

    def _must_be_under_way(self, state: TrialState) -> None:
        """A trial without a result is waited for only while something can produce the result.

        Raises:
            HarnessError: nothing can.
        """
        waits_elsewhere = state.elsewhere or any(other.elsewhere for asked in state.asked for other in asked.roles.values())
        if state.result is None and not waits_elsewhere and not self._pool.busy:
            raise HarnessError(f"{state.spec.id} has no result, and no running trial can produce it")

    def give_up(self, why: str) -> None:
        """End all trials; those without a result are inconclusive."""
        for state in self._states.values():
            self.cut(state.spec, why)
        self._pool.cancel()

    def judged(
        self, spec: TrialSpec, within_s: float | None = None, on_progress: Callable[[], None] | None = None
    ) -> tuple[TrialResult, list[Verdict]]:
        """The result of one trial, as :meth:`result` has it, and its verdicts with known failures applied."""
        result = self.result(spec, within_s, on_progress)
        others = (state.result for state in self._states.values() if state.result is not None)
        seen = compared(result.verdicts, (verdict for other in others for verdict in other.verdicts))
        verdicts, _ = known.apply(seen, self._known)
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
                self._must_be_under_way(state)
                if state.result is not None and name not in told:
                    told.add(name)
                    if on_result is not None:
                        on_result(state.result)
        return self.so_far()

    def so_far(self, interrupted: bool = False) -> Report:
        """The report over the trials that have a result.

        Args:
            interrupted: the others will never be run; the report says so, and no known failure is called stale.
        """
        if interrupted:  # what the checks of a trial say counts, although its relations wait for other trials
            for state in self._states.values():
                if state.own is not None:
                    self._cut(state, "interrupted")
        results = [state.result for state in self._states.values() if state.result is not None]
        report = self.report(results)
        if not interrupted:
            return report
        note = f"interrupted: {len(results)} of {len(self._states)} trials have a result"
        return dataclasses.replace(report, stale_known=(), notes=(*report.notes, note))

    @property
    def trouble(self) -> str:
        """Why folders of trials could not be kept, as one line; empty: they were."""
        return self._artifacts.trouble

    def report(self, results: list[TrialResult]) -> Report:
        """The report over some results, with known failures applied."""
        verdicts = compared(verdict for result in results for verdict in result.verdicts)
        verdicts, stale = known.apply(verdicts, self._known)
        return Report(
            loader=self.loader,
            contracts=dict(self.contracts),
            versions=self.versions,
            seed=self.options.seed,
            run=self._run,
            trials=tuple(results),
            verdicts=tuple(verdicts),
            stale_known=tuple(stale),
            isolation=self.isolation,
            notes=tuple(note for note in (self.isolation_why, self._about_timeouts(results), about_long_paths(), self.trouble) if note),
        )

    def _about_timeouts(self, results: list[TrialResult]) -> str:
        longer = {result.spec.topology: result.spec.timeout_s for result in results if result.spec.timeout_s > self.options.timeout}
        if not longer:
            return ""
        listed = ", ".join(f"{timeout:g} s with {topology}" for topology, timeout in longer.items())
        return f"the job's timeout is longer than {self.options.timeout:g} s where the first batch takes long: {listed}"

    def _advance(self) -> bool:
        """Start the trials that can start, wait a moment, judge those that have ended; return whether any has."""
        if not self._enqueued:
            self._enqueue()
        ended = False
        try:
            for done in self._pool.advance():
                state = self._tasks.pop(done.task)
                try:
                    self._judge(state, done)
                except BaseException as error:  # an interrupt, or an error in badbatch: nothing else will produce its result
                    self._cut(state, f"judging it was ended by {one_line(error)}")
                    raise
                ended = True
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            self._claims = None  # there is no space for what others would read either
            self.give_up(f"the temporary folder {self._pool.scratch.parent} cannot be written to: {error.strerror}")
        return ended

    def _tell(self, state: TrialState) -> None:
        """Give a result to the other processes; if one of them was first, use its result."""
        if self._claims is None or state.result is None or state.spec.scenario == CLEAN:  # each process runs the clean trial itself
            return
        self._claims.tell(state.result)
        found = self._claims.result(self.loader, state.spec)
        if found is not None:
            state.result = dataclasses.replace(found, spec=state.spec)

    def _claim(self, state: TrialState) -> bool:
        """Whether this process should run a trial.

        A clean trial is never left to another process: it is cheap, and this process's other trials wait for its own.
        Its record is still kept by only one of them.
        """
        if self._claims is not None and not state.claimed:
            state.claimed = self._claims.claim(state.spec)
            state.keeps = state.claimed
            state.elsewhere = not state.claimed and state.spec.scenario != CLEAN
        return not state.elsewhere

    def _fetch(self, state: TrialState) -> None:
        """The result of a trial that another process runs, if it has arrived; after too long a wait, run it here."""
        assert self._claims is not None
        found = self._claims.result(self.loader, state.spec)
        if found is not None:
            state.result = dataclasses.replace(found, spec=state.spec)
        elif self._claims.overdue(state.spec, CONFIRM * state.wanted):
            self._run_here(state)

    def _borrow(self) -> None:
        """Take the records of trials that run elsewhere, where relations that are judged here wait for them."""
        if self._claims is None:
            return
        waiting = [state for state in self._states.values() if state.own is not None and state.result is None]
        for state in waiting:
            others = [other for asked in state.asked if asked.wanted for other in asked.roles.values()]
            for other in others:
                if not other.elsewhere or other.over:
                    continue
                found = self._claims.shared(self.loader, other.spec)
                if found is not None and found[1]:
                    other.own, other.records, other.over = dataclasses.replace(found[0], spec=other.spec), found[1], True
                elif (told := self._claims.result(self.loader, other.spec)) is not None:
                    other.absent = Mark.INCONCLUSIVE, told.verdicts[0].reason if told.verdicts else told.ended
                elif self._claims.overdue(other.spec, CONFIRM * other.wanted):
                    self._run_here(other)
            self._settle(state)

    def _run_here(self, state: TrialState) -> None:
        """The process that claimed a trial must be gone."""
        state.elsewhere, state.keeps, state.claimed = False, True, True
        self._submit(state, state.wanted)

    def _judge(self, state: TrialState, done: Done) -> None:
        history, folder, alone = done.history, done.folder, done.task.alone
        spec = history.spec
        if state.reruns_for is not None:
            state.records, state.over = [folder], True
            self._settle(state.reruns_for.subject)
            return
        for waiting in self._policy.seen(history):
            self._submit(waiting, waiting.wanted)
        kept = self._artifacts.name(spec) if not state.needed_by or not state.hidden else None
        replay = again(kept) if kept is not None else ""
        verdicts = judge(history, clean=self._policy.spoiled(spec), replay=replay)
        failed = any(v.mark is Mark.FAIL and v.check in self._questions.checks for v in verdicts)
        what = self._policy.after(state, history, verdicts, failed=failed, alone=alone)
        if what is Next.ALONE:
            self._submit(state, alone=True)
            shutil.rmtree(folder, ignore_errors=True)
            return
        if failed:
            keep_pictures(history, verdicts)
        failed_before = any(v.mark is Mark.FAIL for _, earlier in state.runs[:-1] for v in earlier)
        if failed or not failed_before:  # a passing repetition must not replace the record of the failure
            state.folder = self._artifacts.keep(folder, kept, failed, state.keeps, remove=False) or state.folder
            if state.folder is not None and state.keeps:
                seen = context.Context(clean=self._policy.spoiled(spec))
                self._artifacts.add(functools.partial(context.write, state.folder, seen))
        if state.compared:
            state.records.append(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if what is Next.AGAIN:
            self._submit(state, alone=alone, first=True)
        elif what is Next.RESULT:
            self._over(state)

    def _over(self, state: TrialState) -> None:
        """A trial has run as often as it should: it has its result, unless relations that are asked of it wait for others."""
        state.own = self._result(state)
        state.runs.clear()
        state.over = True
        if self._claims is not None and state.needed_by and state.spec.scenario != CLEAN:
            self._claims.share(state.own, state.records)
        self._settle(state)
        self._settle_others(state)

    def _settle_others(self, state: TrialState) -> None:
        waiting = state.needed_by if state.reruns_for is None else [state.reruns_for]
        for asked in waiting:
            self._settle(asked.subject)
        release(state)

    def _settle(self, state: TrialState) -> None:
        """The result of a trial, once all relations that are asked of it have their verdict."""
        if state.own is None or state.result is not None or state.elsewhere:
            return
        try:
            verdicts = self._relations.verdicts(state, self._submit)
        except BaseException as error:  # nothing else will bring its result
            self._cut(state, f"comparing it was ended by {one_line(error)}")
            raise
        if verdicts is not None:
            self._finish(state, verdicts)

    def _finish(self, state: TrialState, related: list[Verdict]) -> None:
        assert state.own is not None
        verdicts = sorted((*state.own.verdicts, *related), key=lambda verdict: verdict.check)
        state.result = dataclasses.replace(state.own, verdicts=tuple(consequences(verdicts, related)))
        if not state.hidden:
            self._tell(state)
            self._connect(state)

    def _connect(self, state: TrialState) -> None:
        """Store in a kept folder what the diagnosis of its trial was compared with, for when it is judged alone."""
        for other in self._states.values():
            if state.result is None or not context.belong_together(state.spec, other.spec):
                continue
            result = other.result
            if result is None and self._claims is not None:
                result = self._claims.result(self.loader, other.spec)
            if result is not None:
                self._artifacts.add(functools.partial(context.connect, state.result, result))

    def _result(self, state: TrialState) -> TrialResult:
        history, _ = state.runs[0]
        merged = merge([verdicts for _, verdicts in state.runs])
        merged = [verdict for verdict in merged if verdict.check in self._questions.checks]
        if state.folder is None:  # there is nothing left that could be run again
            merged = [dataclasses.replace(verdict, replay="") for verdict in merged]
        return dataclasses.replace(trial_result(history, merged, state.folder), spec=state.spec)


def check_loader(loader: str, **options: Any) -> Report:
    """Check a loader's promises, as a library call.

    Args:
        loader: ``pkg.module:attr``, or a factory that can be imported by its module and name.
        options: fields of :class:`~badbatch.conformance.options.Options`.

    Raises:
        UserError: the loader, or an option, is wrong.
    """
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    with Suite(name_of(loader), Options(**options), command=f"check_loader({name_of(loader)!r}{given})") as suite:
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
