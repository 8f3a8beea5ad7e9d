"""The result of a run of the suite, as data: the one value from which every report is made, live or stored."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from ...harness.contract.job import Contract
from ...harness.contract.source_names import DEFAULT
from ...harness.errors import UserError
from ...harness.exit_codes import ExitCode
from ...harness.plain import from_plain, to_plain
from ...harness.trial.spec import Topology
from ..judging.verdict import Entry as VerdictEntry
from ..judging.verdict import Mark, Verdict
from .card import card
from .headline import conclusion, first_failures, short, totals
from .observations import Fact
from .printable import printable
from .result import Entry as TrialEntry
from .result import TrialResult
from .run import Run

SCHEMA = 1
"""Version of the JSON report. Fields may be added under the same number; none changes its meaning or is removed."""


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """Everything that a run of the suite over one loader found."""

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
    """What a reader must know about the run as a whole: one line each."""
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
        """The exit code of the command. A run without trials is not a pass."""
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

    @functools.cached_property
    def card(self) -> tuple[Fact, ...]:
        """What was observed about the loader, before any judgement."""
        return card(self.trials)

    def __str__(self) -> str:
        """The result of the run, the cost of one bad sample, and the first failures, in a few lines."""
        head = f"{printable(self.loader)}: {self.conclusion}: {self.totals}"
        costs = [f"one bad sample: {printable(str(fact))}" for fact in self.card if fact.topic == "bad sample"]
        return "\n".join([head, *costs, *first_failures(self.verdicts, self.stale_known)])

    def __repr__(self) -> str:
        return short(self.loader, self.verdicts, self.summary, self.stale_known)

    def to_json(self) -> dict[str, Any]:
        """The JSON report, schema 1: see docs/report-schema.md."""
        # Trials and verdicts describe themselves: their entries have other fields than they.
        data = to_plain(
            _Schema1(
                schema=SCHEMA,
                loader=self.loader,
                contract=next(iter(self.contracts.values()), Contract()),
                contracts=self.contracts,
                run=self.run,
                versions=self.versions,
                seed=self.seed,
                isolation=self.isolation,
                card=self.card,
                trials=(),
                verdicts=(),
                summary={**self.summary, "unsteady": self.summary["flaky"]},  # the first name of "flaky" in schema 1
                stale_known=self.stale_known,
                notes=self.notes,
            )
        )
        data["trials"] = [trial.to_json() for trial in self.trials]
        data["verdicts"] = [verdict.to_json() for verdict in self.verdicts]
        return {field.name: data[field.name] for field in dataclasses.fields(_Schema1)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of :meth:`to_json`.

        Raises:
            UserError: not a report, or one of another schema.
        """
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, Mapping) else data
            raise UserError(f'not a badbatch report of schema {SCHEMA}: "schema" is {found!r}')
        try:
            return cls._of(from_plain(_Schema1, data))
        except UserError as error:
            raise UserError(f"this badbatch report is damaged: {error}") from error

    @classmethod
    def _of(cls, found: _Schema1) -> Report:
        verdicts = tuple(Verdict.of(found.loader, entry) for entry in found.verdicts)
        by_place: dict[tuple[str, str, Topology], list[Verdict]] = {}
        for verdict in verdicts:
            by_place.setdefault((verdict.scenario, verdict.source, verdict.topology), []).append(verdict)
        trials = tuple(
            TrialResult.of(found.loader, entry, by_place.get((entry.scenario, entry.source, entry.topology), ()))
            for entry in found.trials
        )
        return cls(
            loader=found.loader,
            contracts=found.contracts or {trials[0].spec.source if trials else DEFAULT: found.contract},
            versions=found.versions,
            seed=found.seed,
            trials=trials,
            verdicts=verdicts,
            stale_known=found.stale_known,
            isolation=found.isolation,
            notes=found.notes,
            run=found.run,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Schema1:
    """The JSON report (docs/report-schema.md); what came later than version 0.1.0 has a default."""

    schema: int
    loader: str
    contract: Contract
    contracts: Mapping[str, Contract] = dataclasses.field(default_factory=dict)
    run: Run = dataclasses.field(default_factory=Run)
    versions: Mapping[str, str]
    seed: int
    isolation: str = "fork"
    card: tuple[Fact, ...] = ()
    trials: tuple[TrialEntry, ...]
    verdicts: tuple[VerdictEntry, ...]
    summary: Mapping[str, int] = dataclasses.field(default_factory=dict)
    stale_known: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
