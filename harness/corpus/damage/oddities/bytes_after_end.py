"""A JPEG with more bytes after its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("bytes-after-end", effect=Effect.LEGAL)
@dataclass(frozen=True)
class BytesAfterEnd(PictureOddity):
    """A JPEG with more bytes after its end, as when phones append a video."""

    family = "metadata"
    extra: int = 2000

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.plain + b"ftypmp42" + bytes(self.extra), ".jpg"
