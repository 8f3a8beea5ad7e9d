"""``parquet``: rows of an id, text in several scripts, numbers and a nested list, in several files and row groups."""

from __future__ import annotations

from typing import ClassVar

from .declared import ROWS, Declared
from .tables import TableKind


class ParquetKind(TableKind):
    """One sample in each row; see :data:`.declared.ROWS` for its columns."""

    name = "parquet"
    formats = ("parquet",)
    declared: ClassVar[Declared] = ROWS


KIND = ParquetKind()
