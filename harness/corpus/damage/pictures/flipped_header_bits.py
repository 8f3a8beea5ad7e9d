"""Wrong bits in the header."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import payload
from . import PictureFault
from .flipped_scan_bits import flipped

_COUNTS = (1, 4, 16)


@fault("flipped-header-bits", effect=Effect.ERROR)
@dataclass(frozen=True)
class FlippedHeaderBits(PictureFault):
    """A few bits before the picture data are flipped; the effect depends on which bits."""

    family = "bits"
    bits: int = 1

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> FlippedHeaderBits:
        return cls(_COUNTS[turn % len(_COUNTS)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return flipped(data, self.bits, 0, payload(data)[0], draw)
