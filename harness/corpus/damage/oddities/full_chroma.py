"""A JPEG whose colours have the full resolution (4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("full-chroma", effect=Effect.LEGAL)
@dataclass(frozen=True)
class FullChroma(PictureOddity):
    """A JPEG whose colours have the full resolution (4:4:4)."""

    family = "coding"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.jpeg(subsampling=0), ".jpg"
