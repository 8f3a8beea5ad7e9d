"""A block of garbage in the middle of a tar."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...shards import ShardFault, middle
from ...tarfiles import BLOCK, Placed


@fault("garbage-block", effect=Effect.ERROR)
@dataclass(frozen=True)
class GarbageBlock(ShardFault):
    """One block of 512 bytes of garbage is where a header should be: many readers end there without an error."""

    kinds = ("webdataset",)
    level = "shard"
    family = "header"

    inserted: bool = True
    """Between two samples, which stay whole; otherwise in place of the first header of a sample."""
    place: Share = 0.5
    """Where among the samples after the first (0…1)."""
    noise: int = 0
    """Seed of the garbage."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> GarbageBlock:
        return cls(turn % 2 == 0, round(draw.uniform(0, 0.99), 2), draw.randrange(1 << 16))

    def change_blocks(self, data: bytes, placed: Sequence[Placed]) -> bytes:
        at = placed[middle(placed, self.place)].header
        garbage = random.Random(self.noise).randbytes(BLOCK)
        return data[:at] + garbage + data[at if self.inserted else at + BLOCK :]
