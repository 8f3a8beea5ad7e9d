"""Makes the report of a suite from the results of its trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ...harness.contract.job import Contract
from ...harness.processes.temporary_folder import about_long_paths
from .. import known
from ..diagnoses.comparing import compared
from ..judging.verdict import Verdict
from ..options import Options
from ..report.model import Report
from ..report.result import TrialResult
from ..report.run import Run


class Reporting:
    """Knows what a report says about the run as a whole.

    Args:
        entries: of the known files.
        command: the command that started the run.
    """

    def __init__(self, loader: str, options: Options, entries: Sequence[known.Known], command: str) -> None:
        self._loader = loader
        self._options = options
        self._entries = entries
        self._run = Run.now(options.samples, options.batch_size, command)

    def verdicts(self, result: TrialResult, others: Iterable[TrialResult]) -> list[Verdict]:
        """The verdicts of one trial, with known failures applied.

        Args:
            others: the results so far; a failure is compared with theirs, which may show its cause.
        """
        seen = compared(result.verdicts, (verdict for other in others for verdict in other.verdicts))
        verdicts, _ = known.apply(seen, self._entries)
        return list(verdicts)

    def report(
        self,
        results: Sequence[TrialResult],
        contracts: Mapping[str, Contract],
        versions: dict[str, str],
        isolation: tuple[str, str],
        notes: Sequence[str] = (),
    ) -> Report:
        """The report over some results, with known failures applied.

        Args:
            isolation: how trials were started, and why it was not by a fork.
            notes: what else is known about the run; empty ones are left out.
        """
        verdicts = compared(verdict for result in results for verdict in result.verdicts)
        verdicts, stale = known.apply(verdicts, self._entries)
        used, why = isolation
        fresh = f"trials run in fresh interpreters: {why}" if why else ""
        notes = (fresh, self._about_timeouts(results), about_long_paths(), *notes)
        return Report(
            loader=self._loader,
            contracts=dict(contracts),
            versions=versions,
            seed=self._options.seed,
            run=self._run,
            trials=tuple(results),
            verdicts=tuple(verdicts),
            stale_known=tuple(stale),
            isolation=used,
            notes=tuple(note for note in notes if note),
        )

    def _about_timeouts(self, results: Iterable[TrialResult]) -> str:
        asked = self._options.timeout
        longer = {result.spec.topology: result.spec.timeout_s for result in results if result.spec.timeout_s > asked}
        if not longer:
            return ""
        listed = ", ".join(f"{timeout:g} s with {topology}" for topology, timeout in longer.items())
        return f"the job's timeout is longer than {asked:g} s where the first batch takes long: {listed}"


def of_interrupted(report: Report, trials: int) -> Report:
    """The report of a run that was interrupted: it says so, and calls no known failure stale.

    Args:
        trials: how many were selected.
    """
    note = f"interrupted: {len(report.trials)} of {trials} trials have a result"
    return dataclasses.replace(report, stale_known=(), notes=(*report.notes, note))
