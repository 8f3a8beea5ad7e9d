"""A progressive JPEG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("progressive", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Progressive(PictureOddity):
    """A progressive JPEG."""

    family = "coding"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.jpeg(progressive=True, subsampling=2), ".jpg"
