"""A file in which one column has another type."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...tables import TableFault

if TYPE_CHECKING:
    import pyarrow as pa

_TURNS = (("amount", "string"), ("number", "float32"), ("id", "string"), ("spans", "string"), ("amount", "float64"))


@fault("changed-type", effect=Effect.ERROR)
@dataclass(frozen=True)
class ChangedType(TableFault):
    """One file stores a column as another type than the others: numbers as text, doubles as single floats, lists as JSON."""

    kinds = ("parquet",)
    level = "file"
    family = "schema"

    column: str = "amount"
    type: str = "string"
    """One of the types that occur: ``amount`` as string or float64, ``number`` as float32, ``id`` or ``spans`` as
    string."""

    def __post_init__(self) -> None:
        if (self.column, self.type) not in _TURNS:
            raise ValueError(
                "column and type must be one of " + ", ".join(f"{column} as {name}" for column, name in _TURNS)
            )

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ChangedType:
        return cls(*_TURNS[turn % len(_TURNS)])

    def change_table(self, table: pa.Table) -> pa.Table:
        import json

        import pyarrow as pa

        column = table[self.column]
        if self.column == "spans":
            changed = pa.array([json.dumps(value) for value in column.to_pylist()], pa.string())
        else:
            changed = column.cast(pa.type_for_alias(self.type), safe=False)
        return table.set_column(table.column_names.index(self.column), self.column, changed)
