"""A null in a column of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("null-integer", effect=Effect.VALUE)
@dataclass(frozen=True)
class NullInteger(TableFault):
    """A null among integers. pandas then reads the whole column as floats, and a tensor cannot contain it."""

    kinds = ("parquet",)
    family = "null"

    def change_row(self, row: dict[str, Any]) -> None:
        row["amount"] = None
