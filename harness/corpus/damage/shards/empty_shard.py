"""A shard that should contain samples and is empty."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...layout import Regions
from ...shards import ShardFault
from ...tarfiles import BLOCK, Placed


@fault("empty-shard", effect=Effect.ERROR)
@dataclass(frozen=True)
class EmptyShard(ShardFault):
    """The shard has zero bytes, or only the end marker of an archive, in place of its samples."""

    kinds = ("webdataset",)
    level = "shard"
    family = "cut"

    marker: bool = False
    """Whether the end marker is present, which makes it a legal archive: nothing shows that samples are missing."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> EmptyShard:
        return cls(marker=turn % 2 == 1)

    def change_blocks(self, data: bytes, placed: Sequence[Placed]) -> bytes:
        return bytes(20 * BLOCK) if self.marker else b""

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        return data if self.marker else b""
