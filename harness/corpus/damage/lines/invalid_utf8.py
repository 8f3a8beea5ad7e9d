"""Bytes that are not UTF-8."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault, into_text

_BYTES = {
    "latin-1": b"caf\xe9 ",
    "lone-continuation": b"\x80",
    "cut-letter": b"\xe6\x9c",
    "surrogate": b"\xed\xa0\x80",
    "overlong": b"\xc0\xaf",
}


@fault("invalid-utf8", effect=Effect.ERROR)
@dataclass(frozen=True)
class InvalidUtf8(LineFault):
    """The text of the line contains bytes that are not UTF-8."""

    kinds = ("jsonl",)
    family = "encoding"

    how: str = "latin-1"
    """``latin-1``, ``lone-continuation``, ``cut-letter``, ``surrogate`` or ``overlong``."""

    def __post_init__(self) -> None:
        if self.how not in _BYTES:
            raise ValueError(f"how must be one of {', '.join(_BYTES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> InvalidUtf8:
        return cls(list(_BYTES)[turn % len(_BYTES)])

    def change_line(self, line: bytes) -> bytes:
        return into_text(line, _BYTES[self.how])
