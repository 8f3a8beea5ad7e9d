"""What a check is: a pure function from a recorded trial to violations, with a stable id and a reason to care."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from ...harness.contract.job import Contract
from ...harness.errors import UserError
from ...harness.faults import Effect
from ...harness.nearest import unknown
from ...harness.sources.truth import Owed
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Ledger

CheckFunction = Callable[[History, Ledger, Expectation], "Iterator[Violation]"]


@dataclasses.dataclass(frozen=True)
class Violation:
    """One broken promise, with the samples that show it."""

    promised: str
    happened: str
    lost: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    witnesses: tuple[int, ...] = ()
    """Other samples that show it, as few as possible."""
    share: str = ""
    """Whose samples they were, if that is known: ``all in worker 0's share``."""
    follows_from: str = ""
    """The id of the check whose violation explains this one, if the history shows it; empty: none is known."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One property."""

    id: str
    title: str
    why: str
    """Why users should care."""
    source: str
    """Where the rule comes from."""
    exercised: Callable[[TrialSpec], bool]
    """Whether a trial of this kind can break it."""
    needs: Callable[[Contract, TrialSpec], str | None]
    """Why the check does not apply under a contract; None: it does."""
    can_acquit_cut: bool
    """Whether it can pass in a trial that was cut short."""
    function: CheckFunction
    implies: tuple[str, ...] = ()
    """The checks whose violations a violation of this one explains, in the same trial."""

    def __call__(self, history: History, ledger: Ledger, expected: Expectation) -> list[Violation]:
        """The violations in one trial."""
        return list(self.function(history, ledger, expected))


_REGISTRY: dict[str, Check] = {}


def always(spec: TrialSpec) -> bool:
    """Every trial exercises the check."""
    return True


def with_effects(*effects: Effect) -> Callable[[TrialSpec], bool]:
    """Trials whose plan has one of these effects exercise the check."""

    def exercised(spec: TrialSpec) -> bool:
        return any(fault.effect in effects for fault in spec.plan.values())

    return exercised


def nothing_needed(contract: Contract, spec: TrialSpec) -> str | None:
    """Every contract has what the check needs."""
    return None


def check(
    id: str,
    *,
    title: str,
    why: str,
    source: str,
    exercised: Callable[[TrialSpec], bool] = always,
    needs: Callable[[Contract, TrialSpec], str | None] = nothing_needed,
    can_acquit_cut: bool = False,
    implies: Sequence[str] = (),
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a generator of violations as the check ``id``.

    Args:
        implies: the checks whose violations a violation of this one explains, in the same trial.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if id in _REGISTRY:
            raise ValueError(f"two checks are called {id!r}")
        _REGISTRY[id] = Check(id, title, why, source, exercised, needs, can_acquit_cut, function, tuple(implies))
        return function

    return register


def registry() -> dict[str, Check]:
    """All checks by id, in order of their ids."""
    return dict(sorted(_REGISTRY.items()))


def causes_first() -> list[str]:
    """The ids of all checks, each before those that it implies.

    Raises:
        graphlib.CycleError: checks imply each other.
    """
    behind: dict[str, set[str]] = {name: set() for name in registry()}
    for name, one in registry().items():
        for implied in one.implies:
            behind.setdefault(implied, set()).add(name)
    return [name for name in TopologicalSorter(behind).static_order() if name in _REGISTRY]


def find(name: str) -> Check:
    """The check of that id.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        raise UserError(unknown("check", name, sorted(_REGISTRY))) from None


def from_an_error(epoch: Epoch, expected: Expectation) -> str:
    """The check that explains what an epoch lacks, if the loader raised although nothing is damaged; empty: it did not.

    For ``follows_from`` of a violation.
    """
    return "contract-kept" if any(epoch.errors) and not np.any(expected.owed != Owed.GOOD) else ""


def spans(samples: Any, limit: int = 5) -> str:
    """Sample ids as ``8-11, 16-19``: at most ``limit`` spans, then how many more samples there are.

    >>> spans([8, 9, 10, 11, 16, 5])
    '5, 8-11, 16'
    """
    ids = sorted({int(sample) for sample in samples})
    found: list[tuple[int, int]] = []
    for sample in ids:
        if found and found[-1][1] == sample - 1:
            found[-1] = (found[-1][0], sample)
        else:
            found.append((sample, sample))
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found[:limit])
    rest = sum(last - first + 1 for first, last in found[limit:])
    return f"{shown} and {rest} more" if rest else shown


def was(number: int) -> str:
    """``was`` or ``were``."""
    return "was" if number == 1 else "were"


def count(number: int, noun: str) -> str:
    """``1 sample``, ``3 samples``, ``2 batches``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"
