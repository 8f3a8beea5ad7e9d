"""A file without the end of its last row group; the footer is in place."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...layout import Regions
from ...tables import TableFault


@fault("cut-row-group", effect=Effect.ERROR)
@dataclass(frozen=True)
class CutRowGroup(TableFault):
    """The end of the last row group is missing and the footer follows directly, so its offsets point past the data."""

    kinds = ("parquet", "windows")
    level = "file"
    family = "cut"

    keep: Share = 0.5
    """The share of the group's bytes that is left (0…1, less than all)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> CutRowGroup:
        return cls((0.5, 0.0, 0.9)[turn % 3])

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        start, stop = regions.groups[-1]
        return data[: start + int(self.keep * (stop - start))] + data[stop:]
