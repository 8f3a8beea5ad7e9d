"""NaN inside a window, where the schema allows it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...layout import StoredFault


@fault("nan-in-window", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NanInWindow(StoredFault):
    """One value of the window is NaN, which the corpus declares legal: the sensor sent nothing."""

    kinds = ("windows",)
    odd = True
    family = "nan"

    place: Share = 0.5
    """Where in the window (0…1)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> NanInWindow:
        return cls(round(draw.uniform(0, 0.99), 2))

    def change_row(self, row: dict[str, Any]) -> None:
        values = row["values"]
        values[int(self.place * len(values))] = math.nan
