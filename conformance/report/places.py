"""Where something was seen, in words: scenarios and topologies as a reader would name them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...harness.contract.source_names import cell
from ...harness.trial.spec import Topology
from ..judging.verdict import Verdict

MOST_PLACES = 6


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the matrix."""

    source: str
    topology: Topology

    @property
    def heads(self) -> tuple[str, str, str, str]:
        """Workers, ranks, start method and whether workers persist, in words; empty if it is the usual value."""
        topology = self.topology
        return str(topology.workers), str(topology.ranks), topology.start_method or "", "yes" if topology.persistent else ""

    def __str__(self) -> str:
        return cell(self.topology, self.source)


_MOST_NAMES = 12  # scenarios in one place; otherwise everything that a loader's contract excludes would be listed
_FIRST_NAMES = 4
_HEADS = ("workers", "ranks", "start", "persistent")


def heads(columns: Sequence[Column]) -> list[tuple[str, tuple[str, ...]]]:
    """The headings above columns, besides their source: for each line its name, and the word for each column.

    A line with the usual value in every column is left out.
    """
    lines = zip(_HEADS, zip(*(column.heads for column in columns), strict=True), strict=True)
    return [(name, words) for name, words in lines if name == "workers" or any(word not in ("1", "") for word in words)]


def column_of(verdict: Verdict) -> Column:
    """The column in which a verdict counts."""
    return Column(verdict.source, verdict.topology)


def in_words(cells: Iterable[tuple[str, Column]], ran: Mapping[str, set[Column]], most: int | None = MOST_PLACES) -> tuple[str, ...]:
    """Cells as ``first-bad, last-bad (wherever there are workers)``: scenarios with the same columns are grouped.

    Args:
        ran: the columns in which each scenario was run.
        most: the maximum number of texts; the others are counted. None: no maximum.
    """
    by_scenario: dict[str, dict[Column, None]] = collections.defaultdict(dict)
    for scenario, column in cells:
        by_scenario[scenario][column] = None
    by_where: dict[str, list[str]] = collections.defaultdict(list)
    for scenario, found in by_scenario.items():
        by_where[_where(list(found), ran.get(scenario, set()))].append(scenario)
    texts = [f"{_named(names)} ({where})" if where else _named(names) for where, names in by_where.items()]
    if most is not None and len(texts) > most:
        rest = sum(len(names) for names in list(by_where.values())[most:])
        texts = [*texts[:most], f"and {rest} more scenarios" if rest > 1 else "and 1 more scenario"]
    return tuple(texts)


def _named(names: Sequence[str]) -> str:
    """The names of scenarios; of many the first ones, and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_FIRST_NAMES])} and {len(names) - _FIRST_NAMES} more scenarios"


def _where(found: Sequence[Column], ran: Collection[Column]) -> str:
    """In which of the columns that were run: in words if words fit exactly."""
    if not ran:
        return ""
    sources = {column.source for column in ran}
    shapes = {column.topology for column in found}
    if len(sources) > 1 and set(found) != {column for column in ran if column.topology in shapes}:
        parts = []
        for source in dict.fromkeys(column.source for column in found):
            words = _topologies(
                {c.topology for c in found if c.source == source}, {c.topology for c in ran if c.source == source}
            )
            parts.append(f"{source}: {words or 'everywhere'}")
        return "; ".join(parts)
    return _topologies(shapes, {column.topology for column in ran}) or "everywhere"


_GROUPS: Mapping[str, Callable[[Topology], bool]] = {
    "wherever there are workers": lambda topology: topology.workers > 0,
    "wherever there are several ranks": lambda topology: topology.ranks > 1,
    "wherever there are workers and several ranks": lambda topology: topology.workers > 0 and topology.ranks > 1,
    "without workers": lambda topology: topology.workers == 0,
}


def _topologies(shapes: Collection[Topology], ran: Collection[Topology]) -> str:
    """Empty: in all of them."""
    if set(shapes) == set(ran) and len(ran) > 1:
        return ""
    for words, belongs in _GROUPS.items():
        if len(shapes) > 1 and set(shapes) == {topology for topology in ran if belongs(topology)}:
            return words
    return "; ".join(str(t) for t in sorted(shapes, key=lambda t: (t.ranks, t.workers, t.start_method or "", t.persistent)))
