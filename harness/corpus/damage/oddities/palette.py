"""A PNG of 256 colours from a palette."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("palette", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Palette(PictureOddity):
    """A PNG of 256 colours from a palette."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture.quantize(256, method=2), "PNG", compress_level=1), ".png"
