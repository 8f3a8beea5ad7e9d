"""What can be odd about a picture's file and still legal: a loader must deliver it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ...base import DiskFault

if TYPE_CHECKING:
    from ...studio import Canvas
    from ...words import Vocabulary


class PictureOddity(DiskFault):
    """A legal but unusual property of a picture's format, content or name."""

    kinds = ("imagefolder",)
    odd = True
    marked: ClassVar[bool] = True
    """Whether the picture still has its id mark; otherwise only its path says which sample it is."""

    @property
    def in_name_alone(self) -> bool:
        """Whether the file's bytes are the usual ones."""
        return type(self).encode is PictureOddity.encode

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        """The file's bytes and its extension."""
        return canvas.plain, ".jpg"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        """The file's name. It must stay unique, so it contains the stem in some form."""
        return stem + ending
