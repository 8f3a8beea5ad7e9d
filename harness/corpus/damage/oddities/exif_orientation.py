"""A JPEG that must be turned or mirrored before it is shown, as its EXIF tag says."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...studio import saved
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


_STORED = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
"""Orientation to the number of Pillow's ``Transpose`` that undoes what the tag asks for."""


@fault("exif-orientation", effect=Effect.LEGAL)
@dataclass(frozen=True)
class ExifOrientation(PictureOddity):
    """A JPEG that must be turned or mirrored before it is shown, as its EXIF tag says."""

    family = "metadata"
    orientation: int = 6
    """The number from 1 to 8 that EXIF gives the orientation."""

    def __post_init__(self) -> None:
        if self.orientation not in range(1, 9):
            raise ValueError("orientation must be one of 1 … 8")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ExifOrientation:
        return cls((6, 3, 8, 1, 2, 4, 5, 7)[turn % 8])

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        from PIL import Image

        exif = Image.Exif()
        exif[0x0112] = self.orientation
        # The picture is stored so that it is upright after it is turned as the tag says.
        stored = canvas.picture
        if self.orientation in _STORED:
            stored = stored.transpose(Image.Transpose(_STORED[self.orientation]))
        return saved(stored, "JPEG", quality=canvas.quality, subsampling=2, exif=exif.tobytes()), ".jpg"
