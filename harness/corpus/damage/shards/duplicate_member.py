"""A member that a shard contains twice."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import Shard, ShardFault, with_members
from ...tarfiles import Member

_FIELDS = ("jpg", "cls", "json", "txt")


@fault("duplicate-member", effect=Effect.VALUE)
@dataclass(frozen=True)
class DuplicateMember(ShardFault):
    """The shard contains one member of the sample twice; the second is a copy or empty."""

    kinds = ("webdataset",)
    family = "members"

    field: str = "jpg"
    """``jpg``, ``cls``, ``json`` or ``txt``."""
    empty: bool = False
    """Whether the second has zero bytes; otherwise it is a copy."""

    def __post_init__(self) -> None:
        if self.field not in _FIELDS:
            raise ValueError(f"field must be one of {', '.join(_FIELDS)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> DuplicateMember:
        return cls(_FIELDS[turn // 2 % len(_FIELDS)], empty=turn % 2 == 1)

    def change_members(self, members: list[Member], sample: int, shard: Shard) -> list[Member]:
        own = [member for member in members if member.sample == sample]
        again = [member._replace(data=b"") if self.empty else member for member in own if member.field == self.field]
        return with_members(members, sample, [*own, *again])
