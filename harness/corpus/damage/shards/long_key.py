"""A key of two hundred characters."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import ShardFault


@fault("long-key", effect=Effect.LEGAL)
@dataclass(frozen=True)
class LongKey(ShardFault):
    """The sample's key has 200 characters, for which tar needs an extended header."""

    kinds = ("webdataset",)
    odd = True
    family = "names"

    def change_key(self, key: str) -> str:
        return f"{key}-".ljust(200, "x")
