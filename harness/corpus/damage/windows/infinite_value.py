"""Infinity where the schema forbids it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...tables import TableFault


@fault("infinite-value", effect=Effect.VALUE)
@dataclass(frozen=True)
class InfiniteValue(TableFault):
    """One value of the window is infinite, which the corpus declares forbidden; one such value makes a mean infinite."""

    kinds = ("windows",)
    family = "value"

    place: Share = 0.5
    """Where in the window (0…1)."""
    negative: bool = False

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> InfiniteValue:
        return cls(round(draw.uniform(0, 0.99), 2), negative=turn % 2 == 1)

    def change_row(self, row: dict[str, Any]) -> None:
        values = row["values"]
        values[int(self.place * len(values))] = -math.inf if self.negative else math.inf
