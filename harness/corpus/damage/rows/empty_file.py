"""A file of zero bytes in place of one with samples."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...layout import Regions
from ...tables import TableFault


@fault("empty-file", effect=Effect.ERROR)
@dataclass(frozen=True)
class EmptyFile(TableFault):
    """The file has zero bytes, as after a write to a full disk."""

    kinds = ("parquet", "windows", "jsonl")
    level = "file"
    family = "cut"

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        return b""
