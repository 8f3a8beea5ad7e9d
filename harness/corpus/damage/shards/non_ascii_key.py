"""A key with letters beyond ASCII."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...shards import ShardFault


@fault("non-ascii-key", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NonAsciiKey(ShardFault):
    """The sample's key has letters beyond ASCII and a space."""

    kinds = ("webdataset",)
    odd = True
    family = "names"

    def change_key(self, key: str) -> str:
        return f"{key} Ağaç 木"
