"""A JPEG whose picture data is cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_scan
from . import PictureFault

_SHARES = (0.5, 0.9, 0.1, 0.99)


@fault("jpeg-cut-scan", effect=Effect.ERROR)
@dataclass(frozen=True)
class JpegCutScan(PictureFault):
    """A JPEG that ends inside its picture data, as after a full disk or an interrupted download."""

    family = "cut"
    needs = "jpeg"
    kept: float = 0.5
    """Share of the scan that is left."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> JpegCutScan:
        return cls(_SHARES[turn % len(_SHARES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        start, stop = jpeg_scan(data)
        return data[: start + int((stop - start) * self.kept)]
