"""A PNG with an alpha channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....faults.base import Effect, fault
from ...pngfile import png_bytes
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("alpha", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Alpha(PictureOddity):
    """A PNG with an alpha channel, half transparent at one side."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        height, width, _ = canvas.pixels.shape
        shade = np.broadcast_to(np.linspace(128, 255, width).astype(np.uint8)[:, None], (height, width, 1))
        return png_bytes(np.concatenate((canvas.pixels, shade), axis=2)), ".png"
