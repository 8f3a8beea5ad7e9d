"""Compares several loaders, scenario by scenario: how many of the expected samples arrived, and how each trial ended."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ...harness.exit_codes import ExitCode
from ..judging.verdict import Mark
from .digest import SIGNS, kind_of, worst
from .model import Report
from .places import Column
from .result import TrialResult

SCHEMA = 1
"""Version of the comparison's JSON."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """The result of one loader in one scenario under one topology."""

    kind: str
    """A key of :data:`~badbatch.conformance.report.digest.SIGNS`; empty: that trial was not part of the report."""
    trial: TrialResult | None = None

    def __str__(self) -> str:
        """``36/39 ended``, ``4/39 stalled``, ``n/a``; empty if nothing was run."""
        if not self.kind:
            return ""
        if self.trial is None or self.kind == "n/a":
            return "n/a"
        return f"{self.trial.delivered}/{self.trial.arrivals_expected} {self.trial.ended}"

    @property
    def brief(self) -> str:
        """``36/39``; with how the trial ended if it did not run to its end."""
        return str(self).removesuffix(" ended")

    @property
    def sign(self) -> str:
        """The mark of the trial's worst verdict."""
        return SIGNS[self.kind][0] if self.kind else ""

    @property
    def words(self) -> str:
        """The mark's meaning."""
        return SIGNS[self.kind][1] if self.kind else "not run"


@dataclasses.dataclass(frozen=True)
class Tally:
    """How often one loader broke one promise."""

    failed: int
    known: int
    judged: int
    """Trials in which the verdict is a fail, a known failure or a pass."""

    def __str__(self) -> str:
        known = f" (and {self.known} known)" if self.known else ""
        return f"{self.failed} of {self.judged}{known}" if self.judged else "n/a"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Several reports, side by side."""

    reports: tuple[Report, ...]
    names: tuple[str, ...]
    """The name of each report: its loader, and if several have the same loader, also the file it was read from."""
    scenarios: tuple[str, ...]
    columns: tuple[Column, ...]
    """Each occurs once for every report."""
    cells: Mapping[tuple[int, str, Column], Cell]
    """By number of the report, scenario and column."""
    tallies: Mapping[str, tuple[Tally, ...]]
    """For each check one tally for each report."""

    def cell(self, report: int, scenario: str, column: Column) -> Cell:
        """A cell; an empty one if that report has no such trial."""
        return self.cells.get((report, scenario, column), Cell(""))

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the reports'."""
        order = (ExitCode.HARNESS, ExitCode.BROKEN, ExitCode.INCONCLUSIVE, ExitCode.KEPT)
        codes = {report.exit_code for report in self.reports}
        return next(code for code in order if code in codes)

    @property
    def differences(self) -> tuple[str, ...]:
        """Settings in which the runs differ, so that their cells cannot be compared directly: one line each."""
        asked: dict[str, list[Any]] = {
            "samples": [report.run.samples for report in self.reports],
            "batch size": [report.run.batch_size for report in self.reports],
            "seed": [report.seed for report in self.reports],
            "badbatch": [report.run.badbatch for report in self.reports],
        }
        return tuple(_difference(what, values, self.names) for what, values in asked.items() if len(set(values)) > 1)

    def to_json(self) -> dict[str, Any]:
        """The comparison, with the whole reports behind it: docs/report-schema.md."""
        cells = []
        for (index, scenario, column), cell in self.cells.items():
            trial = cell.trial
            cells.append(
                {
                    "loader": self.names[index],
                    "scenario": scenario,
                    "source": column.source,
                    "topology": column.topology.to_json(),
                    "worst": "unsteady" if cell.kind == "flaky" else cell.kind,  # schema 1 uses the first name of "flaky"
                    "kind": cell.kind,
                    "delivered": trial.delivered if trial else 0,
                    "expected": trial.arrivals_expected if trial else 0,
                    "ended": trial.ended if trial else "not run",
                }
            )
        return {
            "schema": SCHEMA,
            "comparison": list(self.names),
            "differences": list(self.differences),
            "cells": cells,
            "checks": {
                name: {loader: dataclasses.asdict(tally) for loader, tally in zip(self.names, tallies, strict=True)}
                for name, tallies in self.tallies.items()
            },
            "reports": [report.to_json() for report in self.reports],
        }


def _difference(what: str, values: Sequence[Any], names: Sequence[str]) -> str:
    """``samples: 40 in mypkg:make; 100 in other:make``."""
    of: dict[str, list[str]] = collections.defaultdict(list)
    for value, name in zip(values, names, strict=True):
        of["not known" if value in (None, "") else str(value)].append(name)
    return f"{what}: " + "; ".join(f"{value} in {', '.join(some)}" for value, some in of.items())


def compare(reports: Sequence[Report], origins: Sequence[str] = ()) -> Comparison:
    """Put reports side by side.

    Args:
        origins: the file that each was read from, to distinguish two reports of one loader.
    """
    cells: dict[tuple[int, str, Column], Cell] = {}
    for index, report in enumerate(reports):
        cells.update({(index, *place): cell for place, cell in _cells(report).items()})
    places = list(dict.fromkeys((scenario, column) for _, scenario, column in cells))
    return Comparison(
        reports=tuple(reports),
        names=_names(reports, origins),
        scenarios=tuple(dict.fromkeys(scenario for scenario, _ in places)),
        columns=tuple(dict.fromkeys(column for _, column in places)),
        cells=cells,
        tallies=_tallies(reports),
    )


def _cells(report: Report) -> dict[tuple[str, Column], Cell]:
    kinds: dict[tuple[str, Column], set[str]] = collections.defaultdict(set)
    for verdict in report.verdicts:
        kinds[verdict.scenario, Column(verdict.source, verdict.topology)].add(kind_of(verdict))
    found = {}
    for trial in report.trials:
        scenario, source, topology = trial.place
        place = (scenario, Column(source, topology))
        found[place] = Cell(worst(kinds[place]), trial)
    return found


def _names(reports: Sequence[Report], origins: Sequence[str]) -> tuple[str, ...]:
    counts = collections.Counter(report.loader for report in reports)
    names = []
    for report, origin in itertools.zip_longest(reports, origins[: len(reports)], fillvalue=""):
        assert isinstance(report, Report)
        name = report.loader
        if counts[name] > 1 and origin and origin != name:
            name = f"{name} ({origin})"
        while name in names:  # the same report twice
            name += "'"
        names.append(name)
    return tuple(names)


def _tallies(reports: Sequence[Report]) -> dict[str, tuple[Tally, ...]]:
    counts: list[dict[str, collections.Counter[Mark]]] = []
    for report in reports:
        by_check: dict[str, collections.Counter[Mark]] = collections.defaultdict(collections.Counter)
        for verdict in report.verdicts:
            by_check[verdict.check][verdict.mark] += 1
        counts.append(by_check)
    checks = sorted({check for by_check in counts for check in by_check})
    return {check: tuple(_tally(by_check.get(check, collections.Counter())) for by_check in counts) for check in checks}


def _tally(marks: collections.Counter[Mark]) -> Tally:
    return Tally(marks[Mark.FAIL], marks[Mark.KNOWN], marks[Mark.FAIL] + marks[Mark.KNOWN] + marks[Mark.PASS])
