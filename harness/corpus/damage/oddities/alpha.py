"""A PNG with an alpha channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("alpha", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Alpha(PictureOddity):
    """A PNG with an alpha channel, half transparent at one side."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        from PIL import Image

        picture = canvas.picture
        shade = Image.linear_gradient("L").rotate(90).resize(picture.size).point(lambda level: 128 + level // 2)
        picture.putalpha(shade)
        return saved(picture, "PNG", compress_level=1), ".png"
