"""A picture of one channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("grey", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Grey(PictureOddity):
    """A picture of one channel."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture.convert("L"), "JPEG", quality=canvas.quality), ".jpg"
