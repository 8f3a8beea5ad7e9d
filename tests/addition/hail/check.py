"""A check that fails wherever that fault had an effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from badbatch.conformance.checks.base import Violation, check


@check(
    "mild-weather",
    title="No error speaks of hail",
    why="It shows that a check of another package is put to each trial.",
    source="the tests of badbatch",
    exercised=lambda spec: any(fault.kind == "hail" for fault in spec.plan.values()),
)
def mild_weather(history: Any, ledger: Any, expected: Any) -> Iterator[Violation]:
    """Fails wherever the fault had an effect."""
    if len(history.struck):
        yield Violation("no hail", "hail", witnesses=tuple(int(sample) for sample in history.struck))
