"""All rows of a file in one row group."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("one-row-group", effect=Effect.LEGAL)
@dataclass(frozen=True)
class OneRowGroup(TableFault):
    """All rows of the file are in one huge row group (or record batch), so that work cannot be shared by groups."""

    kinds = ("parquet", "windows")
    formats = ("parquet", "arrow")
    level = "file"
    odd = True
    family = "groups"

    def change_groups(self, groups: list[int]) -> list[int]:
        return [sum(groups)]
