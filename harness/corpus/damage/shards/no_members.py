"""A legal shard without members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....faults.base import Effect, fault
from ...shards import ShardFault


@fault("no-members", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NoMembers(ShardFault):
    """There is one more shard, whole and legal, without members: a shard with no work for a worker."""

    kinds = ("webdataset",)
    level = "shard"
    odd = True
    family = "groups"
    adds_file: ClassVar[str | None] = "no-members"
