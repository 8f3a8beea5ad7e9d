"""A null at one level of a nested list."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault

_PLACES = ("first", "middle", "last")
_TURNS = [("column", "first"), *((depth, place) for depth in ("list", "item") for place in _PLACES)]


@fault("null-in-list", effect=Effect.VALUE)
@dataclass(frozen=True)
class NullInList(TableFault):
    """A null in a nested list: in place of the whole list, of an inner list, or of an item of an inner list."""

    kinds = ("parquet",)
    family = "null"

    depth: str = "item"
    """``column``, ``list`` or ``item``."""
    place: str = "first"
    """``first``, ``middle`` or ``last`` of its level; for an item, also of its inner list among the others."""

    def __post_init__(self) -> None:
        if self.depth not in ("column", "list", "item") or self.place not in _PLACES:
            raise ValueError(f"depth must be column, list or item, and place one of {', '.join(_PLACES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> NullInList:
        return cls(*_TURNS[turn % len(_TURNS)])

    def change_row(self, row: dict[str, Any]) -> None:
        if self.depth == "column":
            row["spans"] = None
            return
        level = row["spans"]
        if self.depth == "item":
            level = level[_at(self.place, level)]
        level[_at(self.place, level)] = None


def _at(place: str, items: list[Any]) -> int:
    return {"first": 0, "middle": len(items) // 2, "last": len(items) - 1}[place]
