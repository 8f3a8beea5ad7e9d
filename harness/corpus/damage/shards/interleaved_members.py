"""Two samples whose members alternate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import Shard, ShardFault, with_members
from ...tarfiles import Member


@fault("interleaved-members", effect=Effect.VALUE)
@dataclass(frozen=True)
class InterleavedMembers(ShardFault):
    """The members of the sample and of the next one alternate, as in an archive that was not sorted."""

    kinds = ("webdataset",)
    family = "members"

    def change_members(self, members: list[Member], sample: int, shard: Shard) -> list[Member]:
        partner = shard.partner(sample)
        if partner is None:
            return members
        pairs = itertools.zip_longest(
            *([member for member in members if member.sample == one] for one in sorted((sample, partner)))
        )
        both = [member for pair in pairs for member in pair if member is not None]
        rest = [member for member in members if member.sample != max(sample, partner)]
        return with_members(rest, min(sample, partner), both)

    def touches(self, sample: int, shard: Shard) -> tuple[int, ...]:
        partner = shard.partner(sample)
        return () if partner is None else (partner,)
