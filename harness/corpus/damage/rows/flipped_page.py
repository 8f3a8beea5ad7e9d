"""A page of data with flipped bytes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...layout import Regions
from ...tables import TableFault


@fault("flipped-page", effect=Effect.VALUE)
@dataclass(frozen=True)
class FlippedPage(TableFault):
    """Bytes are flipped in the data of one row group, in a file with or without a checksum for each page."""

    kinds = ("parquet", "windows")
    level = "file"
    family = "bits"

    group: int = 0
    """Which row group, modulo the number of groups."""
    place: float = 0.5
    """Where in the bytes of the group's largest column (0…1)."""
    flips: int = 4
    """How many consecutive bytes are inverted."""
    checksums: bool = False
    """Whether the file has page checksums (only Parquet can; an ``.npz`` has one for each member)."""

    def __post_init__(self) -> None:
        if not 0 <= self.place < 1 or self.flips < 1 or self.group < 0:
            raise ValueError("place must be between 0 and 1, flips at least 1, group at least 0")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> FlippedPage:
        return cls(
            group=draw.randrange(4),
            place=round(draw.uniform(0.3, 0.8), 3),
            flips=draw.randint(1, 8),
            checksums=turn % 2 == 0,
        )

    def with_checksums(self) -> bool:
        return self.checksums

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        start, stop = regions.bodies[self.group % len(regions.bodies)]
        first = start + int(self.place * (stop - start))
        last = min(first + self.flips, stop)
        return data[:first] + bytes(byte ^ 0xFF for byte in data[first:last]) + data[last:]
