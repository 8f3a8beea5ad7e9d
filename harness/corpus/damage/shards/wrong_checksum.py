"""A tar header whose checksum is wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...shards import ShardFault, middle
from ...tarfiles import Placed


@fault("wrong-checksum", effect=Effect.ERROR)
@dataclass(frozen=True)
class WrongChecksum(ShardFault):
    """The checksum in one member's header does not match the header; everything else is whole."""

    kinds = ("webdataset",)
    level = "shard"
    family = "header"

    place: Share = 0.5
    """Where among the samples after the first (0…1)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> WrongChecksum:
        return cls(round(draw.uniform(0, 0.99), 2))

    def change_blocks(self, data: bytes, placed: Sequence[Placed]) -> bytes:
        # POSIX ustar: the checksum is at offset 148, in octal digits. One of them is changed.
        at = placed[middle(placed, self.place)].header + 148 + 3
        return data[:at] + (b"0" if data[at : at + 1] != b"0" else b"1") + data[at + 1 :]
