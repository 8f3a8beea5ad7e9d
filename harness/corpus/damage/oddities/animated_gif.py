"""A GIF of three frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("animated-gif", effect=Effect.LEGAL)
@dataclass(frozen=True)
class AnimatedGif(PictureOddity):
    """A GIF of three frames."""

    family = "format"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        first = canvas.picture.quantize(256, method=2)
        others = [first.rotate(angle) for angle in (120, 240)]
        return saved(first, "GIF", save_all=True, append_images=others, duration=200), ".gif"
