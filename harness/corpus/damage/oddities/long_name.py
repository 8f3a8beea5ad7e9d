"""A file name of 200 characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...words import Vocabulary


@fault("long-name", effect=Effect.LEGAL)
@dataclass(frozen=True)
class LongName(PictureOddity):
    """A file name of 200 characters."""

    family = "name"
    characters: int = 200

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        start = f"{stem}_"
        filling = "_".join(words.words) * (1 + self.characters // 1000)
        return (start + filling)[: self.characters - len(ending)] + ending
