"""A file without one of the columns."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...content import ROW_FIELDS
from ...tables import TableFault

if TYPE_CHECKING:
    import pyarrow as pa


@fault("missing-column", effect=Effect.ERROR)
@dataclass(frozen=True)
class MissingColumn(TableFault):
    """One file lacks a column that the others have, as when the writer was changed halfway."""

    kinds = ("parquet",)
    level = "file"
    family = "schema"

    column: str = "amount"

    def __post_init__(self) -> None:
        if self.column not in ROW_FIELDS:
            raise ValueError(f"column must be one of {', '.join(ROW_FIELDS)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> MissingColumn:
        return cls(ROW_FIELDS[-1 - turn % (len(ROW_FIELDS) - 1)])

    def change_table(self, table: pa.Table) -> pa.Table:
        return table.drop_columns([self.column])
