"""A file name with letters of another script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...words import Vocabulary


@fault("non-ascii-name", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NonAsciiName(PictureOddity):
    """A file name with letters of another script."""

    family = "name"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        foreign = words.foreign
        return f"{foreign[sum(stem.encode()) % len(foreign)]}-{stem}{ending}"
