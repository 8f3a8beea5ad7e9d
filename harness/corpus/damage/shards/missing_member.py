"""A sample that lacks one of its members."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import Shard, ShardFault
from ...tarfiles import Member

_FIELDS = ("jpg", "cls", "json", "txt")


@fault("missing-member", effect=Effect.VALUE)
@dataclass(frozen=True)
class MissingMember(ShardFault):
    """The sample lacks one of its members."""

    kinds = ("webdataset",)
    family = "members"

    field: str = "jpg"
    """``jpg``, ``cls``, ``json`` or ``txt``."""

    def __post_init__(self) -> None:
        if self.field not in _FIELDS:
            raise ValueError(f"field must be one of {', '.join(_FIELDS)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> MissingMember:
        return cls(_FIELDS[turn % len(_FIELDS)])

    def change_members(self, members: list[Member], sample: int, shard: Shard) -> list[Member]:
        return [member for member in members if member.sample != sample or member.field != self.field]
