"""A PNG among JPEGs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("png", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Png(PictureOddity):
    """A PNG among JPEGs."""

    family = "format"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.png(), ".png"
