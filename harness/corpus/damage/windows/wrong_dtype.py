"""Windows of another number type than the others."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...tables import TableFault

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = ("float64", "int16", "string")


@fault("wrong-dtype", effect=Effect.ERROR)
@dataclass(frozen=True)
class WrongDtype(TableFault):
    """The values of one file have another type than those of the others: wider, rounded to integers, or text."""

    kinds = ("windows",)
    level = "file"
    family = "schema"

    dtype: str = "float64"
    """``float64``, ``int16`` or ``string``."""

    def __post_init__(self) -> None:
        if self.dtype not in _TYPES:
            raise ValueError(f"dtype must be one of {', '.join(_TYPES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> WrongDtype:
        return cls(_TYPES[turn % len(_TYPES)])

    def change_table(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        place = table.column_names.index("values")
        changed = table["values"].cast(pa.list_(pa.type_for_alias(self.dtype)), safe=False)
        return table.set_column(place, "values", changed)
