"""One trial of a run with its verdicts and observations, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...harness.contract.source_names import DEFAULT
from ...harness.plain import Plain
from ...harness.plan import FaultPlan
from ...harness.trial.spec import Topology, TrialSpec
from ..judging.observed import Observed
from ..judging.verdict import Verdict


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """One trial with its verdicts, and how many of the expected samples arrived."""

    spec: TrialSpec
    verdicts: tuple[Verdict, ...]
    seconds: float
    ended: str
    """``ended``, ``gave up`` (the consumer), ``never began``, ``not run``, ``stalled``, ``out of time``, ``exit code 1``, …"""
    delivered: int
    """Samples that arrived in the first epoch, over all ranks, each counted once."""
    raised: int
    """Errors that reached the consumers."""
    skipped: int
    """Skips that the loader reported for the first epoch."""
    arrivals_expected: int
    """Good samples that must arrive in the first epoch."""
    folder: Path | None = None
    """Where the trial's record is kept; None: it is not."""
    observed: Observed = dataclasses.field(default_factory=Observed)

    @property
    def place(self) -> tuple[str, str, Topology]:
        """(scenario, source, topology): the key that joins verdicts and trials."""
        return self.spec.scenario, self.spec.source, self.spec.topology

    @property
    def missing(self) -> int:
        """Good samples that must arrive in the first epoch, and did not."""
        return max(0, self.arrivals_expected - self.delivered)

    def to_json(self) -> dict[str, Any]:
        """The trial's entry in the JSON report; its verdicts are in a list of their own."""
        return Entry(
            id=self.spec.id,
            scenario=self.spec.scenario,
            source=self.spec.source,
            topology=self.spec.topology,
            seconds=round(self.seconds, 3),
            ended=self.ended,
            delivered=self.delivered,
            expected=self.arrivals_expected,
            raised=self.raised,
            skipped=self.skipped,
            folder=self.folder,
            observed=self.observed,
        ).to_json()

    @classmethod
    def from_json(cls, loader: str, data: Any, verdicts: Iterable[Verdict] = ()) -> TrialResult:
        """The inverse of :meth:`to_json`, see :meth:`of`.

        Raises:
            UserError: the data are not an entry of a trial.
        """
        return cls.of(loader, Entry.from_json(data), verdicts)

    @classmethod
    def of(cls, loader: str, entry: Entry, verdicts: Iterable[Verdict] = ()) -> TrialResult:
        """From an entry of a JSON report. The entry names only the question: the spec has no plan."""
        return cls(
            spec=TrialSpec(
                loader=loader,
                directory="",
                scenario=entry.scenario,
                source=entry.source,
                topology=entry.topology,
                plan=FaultPlan(),
            ),
            verdicts=tuple(verdicts),
            seconds=entry.seconds,
            ended=entry.ended,
            delivered=entry.delivered,
            raised=entry.raised,
            skipped=entry.skipped,
            arrivals_expected=entry.delivered if entry.expected is None else entry.expected,
            folder=entry.folder,
            observed=entry.observed or Observed(),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry(Plain):
    """A trial as schema 1 of the JSON report has it (docs/report-schema.md)."""

    id: str = ""
    scenario: str
    source: str = DEFAULT
    topology: Topology
    seconds: float
    ended: str
    delivered: int
    expected: int | None = None
    raised: int
    skipped: int
    folder: Path | None = None
    observed: Observed | None = None
