"""A JPEG without its last two bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_scan
from . import PictureFault


@fault("jpeg-cut-end", effect=Effect.ERROR)
@dataclass(frozen=True)
class JpegCutEnd(PictureFault):
    """A JPEG that lacks only its end-of-image marker: all its content is there."""

    family = "cut"
    needs = "jpeg"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return data[: jpeg_scan(data)[1]]
