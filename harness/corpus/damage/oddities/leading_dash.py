"""A file name that begins with a dash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...words import Vocabulary


@fault("leading-dash", effect=Effect.LEGAL)
@dataclass(frozen=True)
class LeadingDash(PictureOddity):
    """A file name that begins with a dash, like an option."""

    family = "name"

    def rename(self, stem: str, ending: str, words: Vocabulary) -> str:
        return f"-{stem}{ending}"
