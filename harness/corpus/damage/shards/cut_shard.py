"""A tar that ends too early."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import ShardFault, middle
from ...tarfiles import BLOCK, Placed

_PLACES = ("member", "header", "between-members", "boundary")


@fault("cut-shard", effect=Effect.ERROR)
@dataclass(frozen=True)
class CutShard(ShardFault):
    """The tar ends inside a header, inside a member, between two members of one sample, or between two samples."""

    kinds = ("webdataset",)
    level = "shard"
    family = "cut"

    at: str = "member"
    """``member``, ``header``, ``between-members``, or ``boundary``: then nothing shows that samples are missing."""
    place: float = 0.5
    """Where among the samples after the first (0…1)."""

    def __post_init__(self) -> None:
        if self.at not in _PLACES or not 0 <= self.place < 1:
            raise ValueError(f"at must be one of {', '.join(_PLACES)}, and place between 0 and 1")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> CutShard:
        return cls(_PLACES[turn % len(_PLACES)], round(draw.uniform(0, 0.99), 2))

    def change_blocks(self, data: bytes, placed: Sequence[Placed]) -> bytes:
        first = middle(placed, self.place)
        second = placed[min(first + 1, len(placed) - 1)]
        end = {
            "header": second.header + BLOCK // 2,
            "member": second.data + max(len(second.member.data) // 2, 1),
            "between-members": second.header,
            "boundary": placed[first].header,
        }[self.at]
        return data[:end]
