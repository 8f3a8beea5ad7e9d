"""A last line without a newline."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("unterminated-last-line", effect=Effect.LEGAL)
@dataclass(frozen=True)
class UnterminatedLastLine(LineFault):
    """The last line of the file has no newline."""

    kinds = ("jsonl",)
    level = "file"
    odd = True
    family = "endings"

    def change_text(self, text: bytes) -> bytes:
        return text.removesuffix(b"\n")
