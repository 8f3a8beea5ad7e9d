"""NaN where the schema allows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...layout import StoredFault


@fault("nan-number", effect=Effect.LEGAL)
@dataclass(frozen=True)
class NanNumber(StoredFault):
    """The number is NaN, which the corpus declares to be legal in this column."""

    kinds = ("parquet",)
    odd = True
    family = "nan"

    def change_row(self, row: dict[str, Any]) -> None:
        row["number"] = math.nan
