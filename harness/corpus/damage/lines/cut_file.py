"""A file of lines that ends too early."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ....faults.parameters import Share
from ...lines import LineFault


@fault("cut-file", effect=Effect.ERROR)
@dataclass(frozen=True)
class CutFile(LineFault):
    """The file ends inside a line.

    That line cannot be parsed, and nothing shows that the lines after it are missing.
    """

    kinds = ("jsonl",)
    level = "file"
    family = "cut"

    keep: Share = 0.5
    """The share of the file that is left (0…1, less than all)."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> CutFile:
        return cls(round(draw.uniform(0.1, 0.95), 2))

    def change_text(self, text: bytes) -> bytes:
        return text[: int(self.keep * len(text))]
