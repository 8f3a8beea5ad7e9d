"""What a run of the suite found, as data: the one value that every report is made from, live or stored."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...harness.contract.job import Contract
from ...harness.errors import UserError
from ...harness.plan import FaultPlan
from ...harness.trial.spec import Topology, TrialSpec
from ..commands.exit_codes import ExitCode
from ..judging.verdict import Mark, Verdict
from .headline import conclusion, first_failures, short, totals
from .printable import printable
from .run import Run

SCHEMA = 1
"""Version of the JSON report. Fields may be added under the same number; none changes its meaning or goes away."""


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """One trial with its verdicts, and what arrived of what should."""

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

    @property
    def place(self) -> tuple[str, str, Topology]:
        """(scenario, source, topology): what verdicts and trials are joined by."""
        return self.spec.scenario, self.spec.source, self.spec.topology

    @property
    def missing(self) -> int:
        """Good samples that must arrive in the first epoch, and did not."""
        return max(0, self.arrivals_expected - self.delivered)

    def to_json(self) -> dict[str, Any]:
        """The trial's entry in the JSON report; its verdicts stand in a list of their own."""
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
        }

    @classmethod
    def from_json(cls, loader: str, data: Mapping[str, Any], verdicts: Iterable[Verdict] = ()) -> TrialResult:
        """From an entry of a JSON report. The entry names the question only: the spec comes without its plan."""
        spec = TrialSpec(
            loader=loader,
            directory="",
            scenario=data["scenario"],
            source=data.get("source", "map"),
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
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """All that a run of the suite over one loader found."""

    loader: str
    contracts: Mapping[str, Contract]
    """What the loader promises, by source."""
    versions: Mapping[str, str]
    seed: int
    trials: tuple[TrialResult, ...]
    verdicts: tuple[Verdict, ...]
    stale_known: tuple[str, ...] = ()
    """Entries of the known files that match nothing, or whose check now holds: one line each."""
    isolation: str = "fork"
    notes: tuple[str, ...] = ()
    """What a reader must know of the run as a whole: one line each."""
    run: Run = dataclasses.field(default_factory=Run)

    @functools.cached_property
    def summary(self) -> dict[str, int]:
        """How many verdicts have each mark, by its value, and how many are ``flaky``."""
        counts = {mark.value: 0 for mark in (Mark.PASS, Mark.FAIL, Mark.INCONCLUSIVE, Mark.NA, Mark.KNOWN)}
        for verdict in self.verdicts:
            counts[verdict.mark.value] += 1
        counts["flaky"] = sum(verdict.flaky is not None for verdict in self.verdicts)
        return counts

    @property
    def exit_code(self) -> ExitCode:
        """What the command ends with. Nothing run is not a pass."""
        summary = self.summary
        if summary["fail"] or self.stale_known:
            return ExitCode.BROKEN
        if summary["inconclusive"] or not summary["pass"] + summary["known"]:
            return ExitCode.INCONCLUSIVE
        return ExitCode.KEPT

    @property
    def ok(self) -> bool:
        """Whether every promise that was tried was kept."""
        return self.exit_code is ExitCode.KEPT

    @property
    def conclusion(self) -> str:
        """Whether the loader kept its promises, in a few words."""
        return conclusion(self.verdicts, self.summary, self.stale_known)

    @property
    def totals(self) -> str:
        """``10 failed, 2 inconclusive, 7 passed``."""
        return totals(self.summary)

    def __str__(self) -> str:
        """What the run came to and its first failures, in a few lines; the whole is printed by ``badbatch run``."""
        head = f"{printable(self.loader)}: {self.conclusion}: {self.totals}"
        return "\n".join([head, *first_failures(self.verdicts, self.stale_known)])

    def __repr__(self) -> str:
        return short(self.loader, self.verdicts, self.summary, self.stale_known)

    def to_json(self) -> dict[str, Any]:
        """The JSON report, schema 1: see docs/report-schema.md."""
        first = next(iter(self.contracts.values()), Contract())
        return {
            "schema": SCHEMA,
            "loader": self.loader,
            "contract": first.to_json(),
            "contracts": {source: contract.to_json() for source, contract in self.contracts.items()},
            "run": self.run.to_json(),
            "versions": dict(self.versions),
            "seed": self.seed,
            "isolation": self.isolation,
            "trials": [trial.to_json() for trial in self.trials],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "summary": {**self.summary, "unsteady": self.summary["flaky"]},  # the first name of "flaky" in schema 1
            "stale_known": list(self.stale_known),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of :meth:`to_json`.

        Raises:
            UserError: not a report, or one of another schema.
        """
        if data.get("schema") != SCHEMA:
            raise UserError(f'not a badbatch report of schema {SCHEMA}: "schema" is {data.get("schema")!r}')
        try:
            return cls._from_schema_1(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"this badbatch report is incomplete: {type(error).__name__}: {error}") from error

    @classmethod
    def _from_schema_1(cls, data: Mapping[str, Any]) -> Report:
        loader = data["loader"]
        verdicts = tuple(Verdict.from_json(loader, entry) for entry in data["verdicts"])
        by_place: dict[tuple[str, str, Topology], list[Verdict]] = {}
        for verdict in verdicts:
            by_place.setdefault((verdict.scenario, verdict.source, verdict.topology), []).append(verdict)
        trials = []
        for entry in data["trials"]:
            place = (entry["scenario"], entry.get("source", "map"), Topology(**entry["topology"]))
            trials.append(TrialResult.from_json(loader, entry, by_place.get(place, ())))
        contracts = data.get("contracts") or {trials[0].spec.source if trials else "map": data["contract"]}
        return cls(
            loader=loader,
            contracts={source: Contract.from_json(contract) for source, contract in contracts.items()},
            versions=dict(data["versions"]),
            seed=data["seed"],
            trials=tuple(trials),
            verdicts=verdicts,
            stale_known=tuple(data.get("stale_known", ())),
            isolation=data.get("isolation", "fork"),
            notes=tuple(data.get("notes", ())),
            run=Run.from_json(data.get("run", {})),
        )
