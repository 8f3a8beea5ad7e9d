"""A JPEG of four ink channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("cmyk", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Cmyk(PictureOddity):
    """A JPEG of four ink channels, as print shops send them."""

    family = "mode"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return saved(canvas.picture.convert("CMYK"), "JPEG", quality=canvas.quality), ".jpg"
