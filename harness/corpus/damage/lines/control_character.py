"""A bare control character in a string."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault, into_text

_CODES = (0x01, 0x09, 0x0B, 0x1B, 0x1F)


@fault("control-character", effect=Effect.ERROR)
@dataclass(frozen=True)
class ControlCharacter(LineFault):
    """The text of the line contains a bare control character, which JSON allows only when it is escaped (RFC 8259)."""

    kinds = ("jsonl",)
    family = "encoding"

    code: int = 0x01
    """The code of the character: 1 … 31, but neither line feed nor carriage return."""

    def __post_init__(self) -> None:
        if not 1 <= self.code <= 31 or self.code in (10, 13):
            raise ValueError("code must be 1 … 31, but not 10 or 13")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ControlCharacter:
        return cls(_CODES[turn % len(_CODES)])

    def change_line(self, line: bytes) -> bytes:
        return into_text(line, bytes([self.code]))
