"""A WebP among JPEGs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("webp", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Webp(PictureOddity):
    """A WebP among JPEGs."""

    family = "format"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture, "WEBP", quality=canvas.quality, method=0), ".webp"
