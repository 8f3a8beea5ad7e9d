"""A PNG with a JPEG's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("png-called-jpg", effect=Effect.LEGAL)
@dataclass(frozen=True)
class PngCalledJpg(PictureOddity):
    """A PNG with a JPEG's name."""

    family = "name"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.png(), ".jpg"
