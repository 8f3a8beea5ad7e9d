"""A null inside a window."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault

_PLACES = ("middle", "first", "last")


@fault("null-in-window", effect=Effect.VALUE)
@dataclass(frozen=True)
class NullInWindow(TableFault):
    """One value of the window is null, which is not NaN. Many readers convert it to NaN or zero without an error."""

    kinds = ("windows",)
    family = "null"

    place: str = "middle"
    """``first``, ``middle`` or ``last``."""

    def __post_init__(self) -> None:
        if self.place not in _PLACES:
            raise ValueError(f"place must be one of {', '.join(_PLACES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> NullInWindow:
        return cls(_PLACES[turn % len(_PLACES)])

    def change_row(self, row: dict[str, Any]) -> None:
        values = row["values"]
        values[{"first": 0, "middle": len(values) // 2, "last": len(values) - 1}[self.place]] = None
