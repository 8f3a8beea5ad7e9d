"""A line in which every letter beyond ASCII is escaped."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...lines import LineFault


@fault("escaped-text", effect=Effect.LEGAL)
@dataclass(frozen=True)
class EscapedText(LineFault):
    """Letters beyond ASCII are written as escapes, with spaces between the parts: the same object in other bytes."""

    kinds = ("jsonl",)
    odd = True
    family = "encoding"

    def change_line(self, line: bytes) -> bytes:
        return json.dumps(json.loads(line), ensure_ascii=True).encode()
