"""The matrix of a page: for each source the scenarios by topology, each cell with its text and its link."""

from __future__ import annotations

import dataclasses

from ..judging.verdict import Mark
from .digest import SIGNS, Digest
from .places import Column, heads


@dataclasses.dataclass(frozen=True)
class Cell:
    """One trial."""

    kind: str
    """A key of :data:`~badbatch.conformance.report.digest.SIGNS`; empty: not run."""
    words: str = ""
    """The text of its tooltip: its worst verdict, and the checks that have it."""
    target: str = ""
    """The place on the page that says more: ``broken-1``, ``known-2``; empty: there is none."""

    @property
    def sign(self) -> str:
        """The sign of its kind."""
        return SIGNS[self.kind][0] if self.kind else ""


@dataclasses.dataclass(frozen=True)
class Table:
    """The trials over one source."""

    source: str
    heads: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """For each scenario its cells, one for each column."""


def tables(found: Digest) -> list[Table]:
    """A table for each source. Side by side they fit a narrow page as well as a wide one."""
    targets = _targets(found)
    words = _words(found)
    out = []
    for source in dict.fromkeys(column.source for column in found.columns):
        chosen = [index for index, column in enumerate(found.columns) if column.source == source]
        columns = [found.columns[index] for index in chosen]
        rows = []
        for name, kinds in found.rows:
            if any(kinds[index] for index in chosen):
                cells = [_cell(name, found.columns[index], kinds[index], words, targets) for index in chosen]
                rows.append((name, tuple(cells)))
        out.append(Table(source, tuple(heads(columns)), tuple(rows)))
    return out


def _cell(
    scenario: str, column: Column, kind: str, words: dict[tuple[str, str], list[str]], targets: dict[tuple[str, str], str]
) -> Cell:
    if not kind:
        return Cell("")
    trial = f"{scenario}[{column}]"
    checks = words.get((trial, kind), [])
    said = f"{trial}: {SIGNS[kind][1]}" + (f": {', '.join(checks)}" if checks and kind not in ("pass", "n/a") else "")
    return Cell(kind, said, targets.get((trial, kind), ""))


def _words(found: Digest) -> dict[tuple[str, str], list[str]]:
    """For each trial and kind, the checks whose verdict has that kind."""
    checks: dict[tuple[str, str], list[str]] = {}
    for verdict in found.report.verdicts:
        kind = "flaky" if verdict.mark is Mark.FAIL and verdict.flaky is not None else verdict.mark.value
        checks.setdefault((verdict.trial, kind), []).append(verdict.check)
    return checks


def _targets(found: Digest) -> dict[tuple[str, str], str]:
    """From a trial and the kind of its cell to the first card or line about it."""
    targets: dict[tuple[str, str], str] = {}
    for number, group in enumerate(found.broken, 1):
        for trial in group.members:
            for kind in ("fail", "flaky"):
                targets.setdefault((trial, kind), f"broken-{number}")
    for kind, reasons in (("known", found.known), ("inconclusive", found.inconclusive), ("n/a", found.not_applicable)):
        for number, reason in enumerate(reasons, 1):
            for trial in reason.trials:
                targets.setdefault((trial, kind), f"{kind.replace('/', '')}-{number}")
    return targets
