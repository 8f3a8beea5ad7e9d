"""One key in two shards."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import Shard, ShardFault
from ...tarfiles import Member


@fault("key-in-two-shards", effect=Effect.VALUE)
@dataclass(frozen=True)
class KeyInTwoShards(ShardFault):
    """The sample has the key of another sample in the shard before (or after). An index by key loses one of them."""

    kinds = ("webdataset",)
    family = "identity"

    def change_members(self, members: list[Member], sample: int, shard: Shard) -> list[Member]:
        other = shard.elsewhere(sample)
        if other is None:
            return members
        key = shard.keys[other]
        return [
            member._replace(name=f"{key}.{member.field}") if member.sample == sample else member for member in members
        ]

    def touches(self, sample: int, shard: Shard) -> tuple[int, ...]:
        other = shard.elsewhere(sample)
        return () if other is None else (other,)
