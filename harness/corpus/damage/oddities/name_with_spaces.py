"""A file name with spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...words import Vocabulary


@fault("name-with-spaces", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NameWithSpaces(PictureOddity):
    """A file name with spaces."""

    family = "name"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        return f"{words.lines[len(stem) % 20]} {stem}{ending}".replace("/", " ")
