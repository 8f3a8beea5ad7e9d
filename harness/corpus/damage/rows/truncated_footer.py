"""A file that ends inside its footer."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...layout import Regions
from ...tables import TableFault


@fault("truncated-footer", effect=Effect.ERROR)
@dataclass(frozen=True)
class TruncatedFooter(TableFault):
    """The file ends inside its footer, the table of contents: all data pages are there, but no reader finds them."""

    kinds = ("parquet", "windows")
    level = "file"
    family = "cut"

    keep: Share = 0.5
    """The share of the footer that is left (0…1, less than all)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> TruncatedFooter:
        return cls((0.5, 0.0, 0.99)[turn % 3])

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        return data[: regions.footer + int(self.keep * (len(data) - regions.footer))]
