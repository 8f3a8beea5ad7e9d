"""A file name with the extension .JPG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...words import Vocabulary


@fault("upper-case-ending", effect=Effect.LEGAL)
@dataclass(frozen=True)
class UpperCaseEnding(PictureOddity):
    """A file name with the extension .JPG."""

    family = "name"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        return stem + ending.upper()
