"""A picture one pixel wide and 5000 high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("thin", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Thin(PictureOddity):
    """A picture one pixel wide and 5000 high."""

    family = "size"
    marked = False
    pixels: int = 5000

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture.resize((1, self.pixels)), "JPEG", quality=canvas.quality), ".jpg"
