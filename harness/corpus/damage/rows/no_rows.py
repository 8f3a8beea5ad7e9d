"""A legal file without rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....faults.base import Effect, fault
from ...tables import TableFault


@fault("no-rows", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NoRows(TableFault):
    """There is one more file, whole and legal, that has no rows."""

    kinds = ("parquet", "windows", "jsonl")
    formats = ("parquet", "arrow", "jsonl", "jsonl.gz")
    level = "file"
    odd = True
    family = "groups"
    adds_file: ClassVar[str | None] = "no-rows"
