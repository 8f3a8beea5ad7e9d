"""What an observation is: a fact about a loader that the card shows, with no judgement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ....harness.plain import Plain, to_plain
from ....harness.trial.history import History
from ...judging.expectation import Expectation
from ...judging.ledger import Ledger

if TYPE_CHECKING:
    from ..result import TrialResult


@dataclasses.dataclass(frozen=True)
class Fact(Plain):
    """One line of the card."""

    topic: str
    """``bad sample``, ``errors``, ``hung read``, ``death``, ``skips``, ``delay``, ``batches`` or the name of an observation."""
    text: str
    places: tuple[str, ...] = ()
    """Where it was observed; empty: in every trial that shows it."""

    def __str__(self) -> str:
        return f"{self.text} — {'; '.join(self.places)}" if self.places else self.text


Measure = Callable[[History, Ledger, Expectation], Any]
Row = Callable[[Sequence["TrialResult"]], "Iterable[str]"]


@dataclasses.dataclass(frozen=True)
class _Observation:
    name: str
    measure: Measure | None
    row: Row


_REGISTRY: dict[str, _Observation] = {}


def observation(name: str, *, measure: Measure | None = None) -> Callable[[Row], Row]:
    """Register a function from trials to texts as the row ``name`` of the card; a text for each line, none: no row.

    Args:
        measure: a pure function from one trial's history, ledger and expectation to a value that JSON can hold; None: there
            is nothing to keep. The row finds the values in ``trial.observed.more[name]``, and the JSON report has them.
    """

    def register(row: Row) -> Row:
        if name in _REGISTRY:
            raise ValueError(f"two observations are called {name!r}")
        _REGISTRY[name] = _Observation(name, measure, row)
        return row

    return register


def measured(history: History, ledger: Ledger, expected: Expectation) -> dict[str, Any]:
    """What the registered observations keep of one trial, by name; those that measure None are left out."""
    measures = {name: one.measure for name, one in sorted(_REGISTRY.items()) if one.measure is not None}
    values = {name: measure(history, ledger, expected) for name, measure in measures.items()}
    return {name: to_plain(value) for name, value in values.items() if value is not None}


def rows(trials: Sequence[TrialResult]) -> tuple[Fact, ...]:
    """The rows of all registered observations, in the order of their names."""
    return tuple(Fact(name, text) for name, one in sorted(_REGISTRY.items()) for text in one.row(trials))
