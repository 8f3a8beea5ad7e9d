"""A JPEG with a colour profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
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
        # Bytes 24 to 35 are the time at which the profile was made.
        return canvas.jpeg(subsampling=2, icc_profile=profile[:24] + bytes(12) + profile[36:]), ".jpg"
