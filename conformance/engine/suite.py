"""The suite: runs a loader in the trials that the options select, and judges each result."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ...harness.contract.job import Contract
from ...harness.errors import HarnessError
from ...harness.processes.supervisor import Supervisor
from ...harness.trial.spec import TrialSpec
from ...harness.trial.torn import UNWRITABLE
from .. import known
from ..judging.verdict import Verdict
from ..options import Options
from ..report.model import Report
from ..report.result import TrialResult
from . import probing
from .artifacts import Artifacts
from .exchange import Exchange
from .outcomes import Outcomes
from .policy import CONFIRM, Policy
from .pool import Pool
from .preparations import Preparations
from .questions import Questions
from .relations import Relations
from .reporting import Reporting, of_interrupted
from .runs import Runs
from .trial_state import TrialState
from .trials import Trials


class Suite:
    """Runs the conformance suite over one loader.

    >>> with Suite("torch.utils.data:DataLoader", Options()) as suite:   # doctest: +SKIP
    ...     suite.start()
    ...     suite.prepare()
    ...     report = suite.run()

    It only connects its parts: :class:`Trials` are selected by :class:`Questions`; :class:`Runs` of them are queued in a
    :class:`Pool`, as the :class:`Policy` wants; :class:`Outcomes` judge each run and give each trial its result.

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
        directory = os.path.abspath(directory)
        confirm = 1 if options.quick else CONFIRM
        self._artifacts = Artifacts(directory, options.keep, failures, prefix)
        entries = [entry for name in options.known for entry in known.load(known.find(str(name)))]
        self._reporting = Reporting(loader, options, entries, command)
        self._boundary: Supervisor | None = None
        self._queued = False
        # Last: if something above is refused, no folder is left behind.
        self._pool = Pool(loader, directory, options.isolation, sources=options.sources, jobs=options.jobs)
        self._questions = Questions(loader, options, directory, Preparations(self._pool.scratch / "corpora"))
        policy = Policy(confirm)
        self._exchange = Exchange(loader, shared)
        self._relations = Relations(self._questions, policy, self._artifacts, entries, confirm)
        self._trials = Trials(self._questions, self._relations)
        self._runs = Runs(self._pool, policy, self._exchange)
        self._outcomes = Outcomes(
            self._trials, self._questions, policy, self._relations, self._artifacts, self._runs, self._exchange
        )

    def __enter__(self) -> Suite:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the running trials and remove what they wrote; kept folders of failing trials stay."""
        self._pool.close()

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
        self._trials.lay_out(sources, contract)

    def prepare(self) -> None:
        """Run the probes and complete the contracts.

        Raises:
            LoaderError: the loader cannot be judged: it cannot be built, iterated or read.
        """
        run = functools.partial(probing.probed, self._pool, self._questions.clean)
        self._trials.complete(functools.partial(probing.complete, questions=self._questions, options=self.options, run=run))

    def only(self, wanted: Collection[tuple[str, str]]) -> None:
        """Run no other trials than these, and judge no other relations; to be called before the first is run.

        Args:
            wanted: (id of the trial, id of the check or relation).
        """
        self._trials.only(wanted)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the loader is offered; known after the trials were laid out."""
        return tuple(self._trials.contracts)

    def specs(self) -> list[TrialSpec]:
        """The trials that the options select, in the order of the report."""
        return [state.spec for state in self._trials]

    def checks_for(self, spec: TrialSpec) -> list[str]:
        """The ids of the selected checks that a trial exercises, and of the relations that are asked of it."""
        return self._trials.checks_for(spec)

    def result(
        self, spec: TrialSpec, within_s: float | None = None, on_progress: Callable[[], None] | None = None
    ) -> TrialResult:
        """The result of one trial; runs others meanwhile.

        Args:
            within_s: seconds after which the trial is cut and its result is inconclusive; None: only its own deadline
                counts.
            on_progress: called whenever a trial has ended.
        """
        state = self._trials[spec]
        deadline = None if within_s is None else time.monotonic() + within_s
        while state.result is None:
            if deadline is not None and time.monotonic() >= deadline:
                self.cut(spec, f"a timeout of {within_s:g} s, given to pytest, ended it")
                break
            self._outcomes.look_elsewhere(state)
            if (self._advance() or state.result is not None) and on_progress is not None:
                on_progress()
            self._must_be_under_way(state)
        assert state.result is not None
        return state.result

    def judged(
        self, spec: TrialSpec, within_s: float | None = None, on_progress: Callable[[], None] | None = None
    ) -> tuple[TrialResult, list[Verdict]]:
        """The result of one trial, as :meth:`result` has it, and its verdicts with known failures applied."""
        result = self.result(spec, within_s, on_progress)
        return result, self._reporting.verdicts(result, self._results)

    def run(self, on_result: Callable[[TrialResult], None] | None = None) -> Report:
        """Run every trial and report."""
        told: set[str] = set()
        while len(told) < len(self._trials):
            if len(self._results) < len(self._trials):
                self._advance()
            for state in self._trials:
                self._must_be_under_way(state)
                if state.result is not None and state.spec.id not in told:
                    told.add(state.spec.id)
                    if on_result is not None:
                        on_result(state.result)
        return self.so_far()

    def cut(self, spec: TrialSpec, why: str) -> None:
        """End a trial that has no result yet, or do not start it: its result is inconclusive."""
        self._outcomes.cut(self._trials[spec], why)

    def give_up(self, why: str) -> None:
        """End all trials; those without a result are inconclusive."""
        for state in self._trials:
            self._outcomes.cut(state, why)
        self._pool.cancel()

    def so_far(self, interrupted: bool = False) -> Report:
        """The report over the trials that have a result.

        Args:
            interrupted: the others will never be run; the report says so, and no known failure is called stale.
        """
        if not interrupted:
            return self._report(self._results)
        for state in self._trials:  # what the checks of a trial say counts, although its relations wait for other trials
            if state.own is not None:
                self._outcomes.cut(state, "interrupted")
        return of_interrupted(self._report(self._results), len(self._trials))

    def header(self) -> dict[str, Any]:
        """The report without trials and verdicts, as JSON."""
        return self._report([]).to_json()

    @property
    def trouble(self) -> str:
        """Why folders of trials could not be kept, as one line; empty: they were."""
        return self._artifacts.trouble

    @property
    def _results(self) -> list[TrialResult]:
        return [state.result for state in self._trials if state.result is not None]

    def _report(self, results: list[TrialResult]) -> Report:
        if self._boundary is None:
            raise RuntimeError("Suite.start() has not been called")
        return self._reporting.report(
            results,
            self._trials.contracts,
            self._boundary.versions,
            (self._pool.isolation, self._pool.isolation_why),
            (self._pool.about_shared_memory, self.trouble),
        )

    def _advance(self) -> bool:
        """Start the trials that can start, wait a moment, judge those that have ended; return whether any has."""
        if not self._queued:
            self._queued = True
            self._runs.submit_all(self._trials.to_run())
        ended = False
        try:
            for state, done in self._runs.ended():
                self._outcomes.take(state, done)
                ended = True
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            self._exchange.stop()  # there is no space for what others would read either
            self.give_up(self._pool.unwritable(error.strerror or str(error)))
        return ended

    def _must_be_under_way(self, state: TrialState) -> None:
        """A trial without a result is waited for only while something can produce the result.

        Raises:
            HarnessError: nothing can.
        """
        waits_elsewhere = state.elsewhere or any(other.elsewhere for asked in state.asked for other in asked.roles.values())
        if state.result is None and not waits_elsewhere and not self._pool.busy:
            raise HarnessError(f"{state.spec.id} has no result, and no running trial can produce it")
