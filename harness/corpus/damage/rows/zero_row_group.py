"""A row group without rows."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("zero-row-group", effect=Effect.LEGAL)
@dataclass(frozen=True)
class ZeroRowGroup(TableFault):
    """One row group (or record batch) of the file has no rows."""

    kinds = ("parquet", "windows")
    formats = ("parquet", "arrow")
    level = "file"
    odd = True
    family = "groups"

    place: str = "first"
    """``first``, ``middle`` or ``last`` among the file's groups."""

    def __post_init__(self) -> None:
        if self.place not in ("first", "middle", "last"):
            raise ValueError("place must be first, middle or last")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ZeroRowGroup:
        return cls(("first", "middle", "last")[turn % 3])

    def change_groups(self, groups: list[int]) -> list[int]:
        at = {"first": 0, "middle": len(groups) // 2, "last": len(groups)}[self.place]
        return [*groups[:at], 0, *groups[at:]]
