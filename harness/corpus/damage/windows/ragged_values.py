"""A window of another length than the others."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault

_SHAPES = ("short", "long", "empty", "one-short", "one-long")


@fault("ragged-values", effect=Effect.VALUE)
@dataclass(frozen=True)
class RaggedValues(TableFault):
    """The window is shorter or longer than the schema declares, or empty, so that it cannot be stacked with others."""

    kinds = ("windows",)
    family = "ragged"

    shape: str = "short"
    """``short`` and ``long`` (half and twice the length), ``one-short`` and ``one-long`` (by one value), or ``empty``."""

    def __post_init__(self) -> None:
        if self.shape not in _SHAPES:
            raise ValueError(f"shape must be one of {', '.join(_SHAPES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> RaggedValues:
        return cls(_SHAPES[turn % len(_SHAPES)])

    def change_row(self, row: dict[str, Any]) -> None:
        values = row["values"]
        row["values"] = {
            "short": values[: len(values) // 2],
            "long": values * 2,
            "empty": [],
            "one-short": values[:-1],
            "one-long": [*values, values[-1]],
        }[self.shape]
