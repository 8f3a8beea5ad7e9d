"""A JPEG with a comment of 64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from ...jpegparts import with_segment
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("long-comment", effect=Effect.LEGAL)
@dataclass(frozen=True)
class LongComment(PictureOddity):
    """A JPEG with a comment of 64,000 letters before the picture."""

    family = "metadata"
    letters: int = 64_000

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        text = " ".join(canvas.words.lines)
        comment = (text * (self.letters // len(text) + 1))[: self.letters]
        return with_segment(canvas.plain, 0xFE, comment.encode("ascii", "replace")), ".jpg"
