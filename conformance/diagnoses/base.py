"""What a diagnosis is: a cause that is recognised by its pattern in a history, and how to fix it."""

from __future__ import annotations

import dataclasses
import functools
import heapq
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from ...harness.errors import UserError
from ...harness.nearest import hint, listed, unknown

Rule = Callable[[Any], "str | None"]
"""What it looks at is a :class:`~badbatch.conformance.diagnoses.case.Case`, or for a relation a
:class:`~badbatch.conformance.diagnoses.comparison.Comparison`."""

R = TypeVar("R", bound=Rule)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One diagnosis of the registry."""

    id: str
    cause: str
    """One sentence about the cause, true for every history that the rule fits."""
    fix: str
    """One sentence on how to fix it."""
    explains: frozenset[str]
    """The ids of the checks whose failure it can explain."""
    before: tuple[str, ...]
    """The ids of the diagnoses that are tried after this one: their rules fit some of its histories too, and say less."""
    rule: Rule
    """The cause in one clause with the numbers of this history, or None if the pattern does not fit."""
    of_workers: bool = False
    """Whether it blames what happens between workers and consumer: it is withdrawn where the same fails without workers."""


_REGISTRY: dict[str, Entry] = {}


def diagnosis(
    id: str, *, cause: str, fix: str, explains: Sequence[str], before: Sequence[str] = (), of_workers: bool = False
) -> Callable[[R], R]:
    """Register a rule as the diagnosis ``id``.

    Args:
        before: the diagnoses that are tried after this one. Name those whose rules can fit the same trial and say less.
        of_workers: it blames what happens between workers and consumer; where the same check fails in the same way without
            workers, it is withdrawn.
    """

    def register(rule: R) -> R:
        if id in _REGISTRY:
            raise ValueError(f"two diagnoses are called {id!r}")
        _REGISTRY[id] = Entry(id, cause, fix, frozenset(explains), tuple(before), rule, of_workers)
        registry.cache_clear()
        return rule

    return register


def in_order(entries: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """The entries, each before those that its ``before`` names; otherwise in the order in which they are given.

    Raises:
        UserError: a name in ``before`` is unknown, or diagnoses are declared to be before each other.
    """
    behind: dict[str, set[str]] = {name: set() for name in entries}
    for name, entry in entries.items():
        for other in entry.before:
            if other not in behind:
                raise UserError(f"the diagnosis {name!r} is declared to be before {other!r}, which is unknown{hint(other, entries)}")
            behind[other].add(name)
    sorter = TopologicalSorter(behind)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " before ".join(repr(name) for name in error.args[1])
        raise UserError(f"diagnoses are declared to be before each other: {circle}; remove one of these names from a `before`") from None
    place = {name: number for number, name in enumerate(entries)}
    ready: list[tuple[int, str]] = []
    found = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (place[name], name))
        _, name = heapq.heappop(ready)
        sorter.done(name)
        found.append(entries[name])
    return tuple(found)


@functools.cache
def registry() -> dict[str, Entry]:
    """All diagnoses by id, in the order in which they are tried.

    Raises:
        UserError: their order is declared wrongly.
    """
    return {entry.id: entry for entry in in_order(_REGISTRY)}


def find(name: str) -> Entry:
    """The diagnosis of that id.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    try:
        return registry()[name]
    except KeyError:
        raise UserError(unknown("diagnosis", name, registry(), listed("diagnoses"))) from None
