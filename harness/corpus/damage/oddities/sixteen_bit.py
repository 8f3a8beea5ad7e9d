"""A grey PNG of 16 bits a pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("sixteen-bit", effect=Effect.LEGAL)
@dataclass(frozen=True)
class SixteenBit(PictureOddity):
    """A grey PNG of 16 bits a pixel."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        from PIL import Image

        grey = np.asarray(canvas.picture.convert("L")).astype(np.uint16) * 257
        return saved(Image.fromarray(grey), "PNG", compress_level=1), ".png"
