"""A picture of one pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("one-pixel", effect=Effect.LEGAL)
@dataclass(frozen=True)
class OnePixel(PictureOddity):
    """A picture of one pixel."""

    family = "size"
    marked = False

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture.resize((1, 1)), "JPEG", quality=canvas.quality), ".jpg"
