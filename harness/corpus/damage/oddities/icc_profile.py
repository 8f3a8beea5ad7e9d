"""A JPEG with a colour profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...jpegparts import with_segment
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("icc-profile", effect=Effect.LEGAL)
@dataclass(frozen=True)
class IccProfile(PictureOddity):
    """A JPEG with a colour profile."""

    family = "metadata"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        from PIL import ImageCms

        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        # Bytes 24 to 35 contain the time at which the profile was made.
        only_part = b"ICC_PROFILE\0\1\1"
        return with_segment(canvas.plain, 0xE2, only_part + profile[:24] + bytes(12) + profile[36:]), ".jpg"
