"""An empty file."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("no-bytes", effect=Effect.ERROR)
@dataclass(frozen=True)
class NoBytes(PictureFault):
    """A file of zero bytes, as after a crash between creating and writing it."""

    family = "cut"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return b""
