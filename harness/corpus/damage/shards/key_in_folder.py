"""A key with a folder in it."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import ShardFault


@fault("key-in-folder", effect=Effect.LEGAL)
@dataclass(frozen=True)
class KeyInFolder(ShardFault):
    """The sample's members are in folders, one of which has a dot in its name."""

    kinds = ("webdataset",)
    odd = True
    family = "names"

    def change_key(self, key: str) -> str:
        return f"./v1.2/part/{key}"
