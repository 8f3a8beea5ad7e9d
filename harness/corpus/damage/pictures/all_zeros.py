"""A file of zeros."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("all-zeros", effect=Effect.ERROR)
@dataclass(frozen=True)
class AllZeros(PictureFault):
    """A file of the right size that contains only zeros: the size was written before a crash, the data was not."""

    family = "zeros"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return bytes(len(data))
