"""What a corpus of rows declares: the fields, their types, and what is forbidden in a row.

Readers check rows against it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import content

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Declared:
    """What the data set declares about every row."""

    types: Mapping[str, str]
    """Arrow's name of each field's type; lists are written ``list<…>``."""
    row: Callable[[int, int], dict[str, Any]]
    """The undamaged row of (seed, sample)."""
    problem: Callable[[Mapping[str, Any]], str | None]
    """What is wrong with a row by the declared rules, in words; None: nothing. The readers check the types."""

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The types as an Arrow schema in which every field is nullable, so that damaged rows fit too."""
        import pyarrow as pa

        def named(name: str) -> pa.DataType:
            return pa.list_(named(name[5:-1])) if name.startswith("list<") else pa.type_for_alias(name)

        return pa.schema([(field, named(name)) for field, name in self.types.items()])


def row_problem(row: Mapping[str, Any]) -> str | None:
    """For ``parquet`` and ``jsonl``: nothing is null at any level, and the number is not infinite."""
    for name in content.ROW_FIELDS:
        if name not in row:
            return f"there is no {name}"
        if row[name] is None:
            return f"{name} is null"
    number, spans = row["number"], row["spans"]
    if isinstance(number, float) and math.isinf(number):
        return "number is infinite"
    if isinstance(spans, list):
        if any(inner is None for inner in spans):
            return "a list in spans is null"
        if any(item is None for inner in spans if isinstance(inner, list) for item in inner):
            return "an item in spans is null"
    return None


def window_problem(row: Mapping[str, Any]) -> str | None:
    """For ``windows``: nothing is null, all windows have the same length, and no value is infinite."""
    for name in content.WINDOW_FIELDS:
        if name not in row:
            return f"there is no {name}"
        if row[name] is None:
            return f"{name} is null"
    values = row["values"]
    if isinstance(values, list):
        if len(values) != content.WINDOW:
            return f"values has {len(values)} items, not {content.WINDOW}"
        if any(value is None for value in values):
            return "an item in values is null"
        if any(isinstance(value, float) and math.isinf(value) for value in values):
            return "an item in values is infinite"
    return None


ROWS = Declared(
    types={"id": "int64", "text": "string", "number": "float64", "amount": "int32", "spans": "list<list<int64>>"},
    row=content.row,
    problem=row_problem,
)
WINDOWS = Declared(
    types={"id": "int64", "start_us": "int64", "values": "list<float32>"},
    row=lambda seed, sample: content.window_row(sample),
    problem=window_problem,
)
