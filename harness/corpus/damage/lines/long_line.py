"""A line of many megabytes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("long-line", effect=Effect.VALUE)
@dataclass(frozen=True)
class LongLine(LineFault):
    """The line is legal and megabytes long, most of it spaces: readers that work in blocks refuse it."""

    kinds = ("jsonl",)
    family = "size"
    weight = 0.2

    megabytes: float = 50
    """Of 1,000,000 bytes."""

    def __post_init__(self) -> None:
        if not 0 < self.megabytes <= 1000:
            raise ValueError("megabytes lies between 0 and 1000")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> LongLine:
        # Two lines longer than usual blocks of 1 MiB, then lines longer than usual buffers of 64 KiB: a corpus would else be
        # spaces for the most part. One longer than any usual block comes where the others are as much together.
        return cls(3 if turn < 2 else 50 if turn % 1000 == 999 else 0.07)

    def change_line(self, line: bytes) -> bytes:
        return line[:-1].ljust(int(self.megabytes * 1_000_000) - 1) + line[-1:]
