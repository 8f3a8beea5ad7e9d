"""Infinity where the schema forbids it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("infinite-value", effect=Effect.VALUE)
@dataclass(frozen=True)
class InfiniteValue(TableFault):
    """One value of the window is infinite, which the corpus declares to be forbidden; one such value spoils a mean."""

    kinds = ("windows",)
    family = "value"

    place: float = 0.5
    """Where in the window (0…1)."""
    negative: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.place < 1:
            raise ValueError("place lies between 0 and 1")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> InfiniteValue:
        return cls(round(draw.uniform(0, 0.99), 2), negative=turn % 2 == 1)

    def change_row(self, row: dict[str, Any]) -> None:
        values = row["values"]
        values[int(self.place * len(values))] = -math.inf if self.negative else math.inf
