"""One trial of a run with its verdicts and observations, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...harness.contract.source_names import DEFAULT
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
        return {
            "id": self.spec.id,
            "scenario": self.spec.scenario,
            "source": self.spec.source,
            "topology": self.spec.topology.to_json(),
            "seconds": round(self.seconds, 3),
            "ended": self.ended,
            "delivered": self.delivered,
            "expected": self.arrivals_expected,
            "raised": self.raised,
            "skipped": self.skipped,
            "folder": None if self.folder is None else str(self.folder),
            "observed": self.observed.to_json(),
        }

    @classmethod
    def from_json(cls, loader: str, data: Mapping[str, Any], verdicts: Iterable[Verdict] = ()) -> TrialResult:
        """From an entry of a JSON report. The entry names only the question: the spec has no plan."""
        spec = TrialSpec(
            loader=loader,
            directory="",
            scenario=data["scenario"],
            source=data.get("source", DEFAULT),
            topology=Topology(**data["topology"]),
            plan=FaultPlan(),
        )
        folder = data.get("folder")
        return cls(
            spec=spec,
            verdicts=tuple(verdicts),
            seconds=float(data["seconds"]),
            ended=data["ended"],
            delivered=data["delivered"],
            raised=data["raised"],
            skipped=data["skipped"],
            arrivals_expected=data.get("expected", data["delivered"]),
            folder=None if folder is None else Path(folder),
            observed=Observed.from_json(data.get("observed")),
        )
