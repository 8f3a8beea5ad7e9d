"""A line that ends as on Windows."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("carriage-return", effect=Effect.LEGAL)
@dataclass(frozen=True)
class CarriageReturn(LineFault):
    """The line ends with a carriage return and a newline; JSON treats the carriage return as white space."""

    kinds = ("jsonl",)
    odd = True
    family = "endings"

    def change_line(self, line: bytes) -> bytes:
        return line + b"\r"
