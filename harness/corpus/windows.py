"""``windows``: numeric time windows, as list columns of Parquet or Arrow files, or as one ``.npz`` each."""

from __future__ import annotations

from typing import ClassVar

from .declared import WINDOWS, Declared
from .tables import TableKind


class WindowsKind(TableKind):
    """One sample is one window; see :data:`.declared.WINDOWS` for its fields."""

    name = "windows"
    formats = ("parquet", "arrow", "npz")
    declared: ClassVar[Declared] = WINDOWS


KIND = WindowsKind()
