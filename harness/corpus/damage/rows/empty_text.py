"""An empty string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...layout import StoredFault


@fault("empty-text", effect=Effect.LEGAL)
@dataclass(frozen=True)
class EmptyText(StoredFault):
    """The text (or caption) is the empty string: a legal value, not a missing one."""

    kinds = ("parquet", "jsonl", "webdataset")
    odd = True
    family = "empty"

    def change_row(self, row: dict[str, Any]) -> None:
        row["txt" if "txt" in row else "text"] = ""
