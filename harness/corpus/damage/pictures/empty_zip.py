"""An empty archive in place of a picture."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("empty-zip", effect=Effect.ERROR)
@dataclass(frozen=True)
class EmptyZip(PictureFault):
    """The file is a ZIP archive with nothing in it."""

    family = "not a picture"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return b"PK\x05\x06" + bytes(18)
