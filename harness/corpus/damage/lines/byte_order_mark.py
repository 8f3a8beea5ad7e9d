"""A byte-order mark before a line."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("byte-order-mark", effect=Effect.ERROR)
@dataclass(frozen=True)
class ByteOrderMark(LineFault):
    """The line begins with a byte-order mark, as after files were joined.

    RFC 8259 forbids writing it, but parsers may ignore it.
    """

    kinds = ("jsonl",)
    family = "encoding"

    def change_line(self, line: bytes) -> bytes:
        return b"\xef\xbb\xbf" + line
