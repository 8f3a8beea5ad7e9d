"""NUL bytes in a line."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault, into_text


@fault("nul-in-line", effect=Effect.ERROR)
@dataclass(frozen=True)
class NulInLine(LineFault):
    """The line's text contains a NUL byte, or the whole line is NUL bytes, as after a part of the file was lost."""

    kinds = ("jsonl",)
    family = "encoding"

    whole: bool = False
    """Whether every byte of the line is NUL."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> NulInLine:
        return cls(whole=turn % 2 == 1)

    def change_line(self, line: bytes) -> bytes:
        return bytes(len(line)) if self.whole else into_text(line, b"\0")
