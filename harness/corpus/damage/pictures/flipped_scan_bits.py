"""Wrong bits in the picture data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import payload
from . import PictureFault

_COUNTS = (1, 4, 16)


def flipped(data: bytes, count: int, start: int, stop: int, draw: random.Random) -> bytes:
    """``data`` with ``count`` different bits flipped between two offsets."""
    bits = range(8 * start, 8 * stop)
    damaged = bytearray(data)
    for bit in draw.sample(bits, min(count, len(bits))):
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@fault("flipped-scan-bits", effect=Effect.VALUE)
@dataclass(frozen=True)
class FlippedScanBits(PictureFault):
    """A few bits of the picture data are flipped, as by a bad cable or memory; most decoders do not notice."""

    family = "bits"
    bits: int = 1

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> FlippedScanBits:
        return cls(_COUNTS[turn % len(_COUNTS)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return flipped(data, self.bits, *payload(data), draw)
