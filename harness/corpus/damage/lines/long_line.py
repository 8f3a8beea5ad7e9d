"""A line of many megabytes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("long-line", effect=Effect.VALUE)
@dataclass(frozen=True)
class LongLine(LineFault):
    """The line is legal and megabytes long, most of it spaces. Readers that work in blocks refuse it."""

    kinds = ("jsonl",)
    family = "size"
    weight = 0.2

    megabytes: float = 50
    """In megabytes of 1,000,000 bytes."""

    def __post_init__(self) -> None:
        if not 0 < self.megabytes <= 1000:
            raise ValueError("megabytes must be between 0 and 1000")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> LongLine:
        # First two lines longer than the usual blocks of 1 MiB, then lines longer than the usual buffers of 64 KiB:
        # more long ones would make most of the corpus spaces. A very long line, longer than any usual block, comes once
        # in a thousand.
        return cls(3 if turn < 2 else 50 if turn % 1000 == 999 else 0.07)

    def change_line(self, line: bytes) -> bytes:
        return line[:-1].ljust(int(self.megabytes * 1_000_000) - 1) + line[-1:]
