"""An empty list."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...layout import StoredFault


@fault("empty-list", effect=Effect.LEGAL)
@dataclass(frozen=True)
class EmptyList(StoredFault):
    """The nested list is empty, or one list in it is: a legal value, not a missing one."""

    kinds = ("parquet", "jsonl")
    odd = True
    family = "empty"

    inner: bool = False
    """Whether only the last inner list is empty, and not the whole."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> EmptyList:
        return cls(inner=turn % 2 == 1)

    def change_row(self, row: dict[str, Any]) -> None:
        if self.inner:
            row["spans"][-1] = []
        else:
            row["spans"] = []
