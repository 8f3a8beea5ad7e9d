"""A grey PNG of 16 bits a pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....faults.base import Effect, fault
from ...pngfile import png_bytes
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("sixteen-bit", effect=Effect.LEGAL)
@dataclass(frozen=True)
class SixteenBit(PictureOddity):
    """A grey PNG of 16 bits a pixel."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        grey = np.asarray(canvas.picture.convert("L")).astype(np.uint16) * 257
        return png_bytes(grey), ".png"
