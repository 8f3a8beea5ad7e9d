"""A row of nulls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("null-row", effect=Effect.VALUE)
@dataclass(frozen=True)
class NullRow(TableFault):
    """Every field of the row is null, as after an outer join."""

    kinds = ("parquet",)
    family = "null"

    def change_row(self, row: dict[str, Any]) -> None:
        row.update(dict.fromkeys(row))
