"""A file of no bytes where one with samples should be."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...layout import Regions
from ...tables import TableFault


@fault("empty-file", effect=Effect.ERROR)
@dataclass(frozen=True)
class EmptyFile(TableFault):
    """The file has no bytes, as after a write that met a full disk."""

    kinds = ("parquet", "windows", "jsonl")
    level = "file"
    family = "cut"

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        return b""
