"""Two rows with the same id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("duplicate-id", effect=Effect.VALUE)
@dataclass(frozen=True)
class DuplicateId(TableFault):
    """The row has the id of the row before it (the first row: of the row after it); its other fields are correct."""

    kinds = ("parquet",)
    family = "identity"

    def change_rows(self, rows: list[dict[str, Any]], place: int) -> None:
        if len(rows) > 1:
            rows[place]["id"] += -1 if place else 1
