"""What can be odd about a picture's file and yet be legal: a loader must deliver it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ...base import DiskFault

if TYPE_CHECKING:
    from ...studio import Canvas
    from ...words import Vocabulary


class PictureOddity(DiskFault):
    """A legal peculiarity of a picture's format, content or name."""

    kinds = ("imagefolder",)
    odd = True
    marked: ClassVar[bool] = True
    """Whether the picture still carries its id mark; otherwise its path alone says which sample it is."""

    @property
    def in_name_alone(self) -> bool:
        """Whether the file's bytes are as usual."""
        return type(self).encode is PictureOddity.encode

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        """The file's bytes and its ending."""
        return canvas.plain, ".jpg"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        """The file's name; must stay unique, so it keeps the stem in some form."""
        return stem + ending
