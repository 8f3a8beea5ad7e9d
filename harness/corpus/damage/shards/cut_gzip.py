"""A gzip stream that ends too early."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...layout import Regions, StoredFault


@fault("cut-gzip", effect=Effect.ERROR)
@dataclass(frozen=True)
class CutGzip(StoredFault):
    """The compressed stream ends too early. How much of the part before the cut can be read depends on the reader."""

    kinds = ("webdataset", "jsonl")
    formats = ("tar.gz", "jsonl.gz")
    level = "file"
    family = "cut"

    keep: Share = 0.5
    """The share of the compressed bytes that is left (0…1, less than all)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> CutGzip:
        return cls((0.5, 0.9, 0.99)[turn % 3])

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        return data[: int(self.keep * len(data))]
