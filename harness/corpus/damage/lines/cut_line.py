"""A line that was cut."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("cut-line", effect=Effect.ERROR)
@dataclass(frozen=True)
class CutLine(LineFault):
    """The line ends too early. Without its newline it also runs into the next line and damages that line too."""

    kinds = ("jsonl",)
    family = "cut"

    keep: float = 0.5
    """The share of the line that is left (more than 0, less than 1)."""
    newline: bool = True
    """Whether the line's own newline is kept."""

    def __post_init__(self) -> None:
        if not 0 < self.keep < 1:
            raise ValueError("keep must be between 0 and 1")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> CutLine:
        return cls((0.5, 0.1, 0.9, 0.99)[turn % 4], newline=turn % 3 != 2)

    def change_line(self, line: bytes) -> bytes:
        return line[: max(1, int(self.keep * len(line)))]
