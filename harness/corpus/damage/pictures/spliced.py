"""Two pictures in one file."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import payload
from . import PictureFault

_SHARES = (0.5, 0.25, 0.75)


@fault("spliced", effect=Effect.VALUE)
@dataclass(frozen=True)
class Spliced(PictureFault):
    """The file begins as this picture and continues as another: two writers, or blocks assigned to the wrong file."""

    family = "structure"
    at: float = 0.5
    """Share of the picture data, of either file, after which the other picture continues."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> Spliced:
        return cls(_SHARES[turn % len(_SHARES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        second = other()
        (start, stop), (second_start, second_stop) = payload(data), payload(second)
        head = data[: start + int((stop - start) * self.at)]
        return head + second[second_start + int((second_stop - second_start) * self.at) :]
