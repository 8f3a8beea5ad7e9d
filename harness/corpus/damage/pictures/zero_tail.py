"""A file whose end is zeros."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault

_SHARES = (0.5, 0.9, 0.25)
_EXTENT = 512


@fault("zero-tail", effect=Effect.ERROR)
@dataclass(frozen=True)
class ZeroTail(PictureFault):
    """A file of the right size that is zeros after some block: a lost part of the disk, or a preallocated download."""

    family = "zeros"
    kept: float = 0.5
    """Share of the file before the zeros, rounded to blocks of 512 bytes."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ZeroTail:
        return cls(_SHARES[turn % len(_SHARES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        kept = int(len(data) * self.kept) // _EXTENT * _EXTENT
        return data[:kept] + bytes(len(data) - kept)
