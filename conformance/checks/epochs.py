"""Checks on the epochs after the first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.phases import keeps_loader
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger, Stop
from .arrival import drawn, twice
from .base import Violation, check, count, from_an_error


@check(
    "fresh-epoch",
    title="Every later epoch is whole",
    why="An iterator that is exhausted, or continues where the last epoch stopped, trains later epochs on a part of the data.",
    source="the iterable protocol: each iter() starts from the beginning",
    exercised=lambda spec: spec.epochs > 1,
    # A later epoch that is not whole delivers fewer batches than len() says, and may begin with the rest of the one before it.
    implies=("honest-length", "declared-order"),
)
def fresh_epoch(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Epochs two and three, the epoch after an early break, and the one after an error."""
    for epoch in ledger.epochs[1:]:
        if _never_built(history, epoch):
            continue
        if history.spec.phases[history.logical_epochs[epoch.number][-1][0]].load is not None:
            continue  # resume-exact judges the epochs of a loader that was given a state
        after = _after(history, ledger, epoch.number)
        odd = expected.odd
        gone = [
            int(s)
            for s in epoch.having(Fate.LOST, Fate.UNDELIVERED)
            if expected.owed[s] in (Owed.GOOD, Owed.EITHER) and not odd[s]
        ]
        unfinished = [stop for stop in epoch.stops if stop is not Stop.END]
        if gone and (epoch.whole or Stop.NEVER_BEGAN in epoch.stops):
            what = "never began" if unfinished else f"delivered {int(np.count_nonzero(epoch.arrivals))} of {len(epoch.fate)}"
            yield Violation(
                f"epoch {epoch.number}, {after}, is whole",
                f"it {what}: {count(len(gone), 'sample')} never arrived",
                lost=tuple(gone),
                follows_from=from_an_error(epoch, expected),
            )
        yield from drawn(history, epoch, expected)
        for violation in twice(epoch, expected):
            yield Violation(
                f"epoch {epoch.number}, {after}, delivers {violation.promised}",
                violation.happened,
                duplicated=violation.duplicated,
            )


def _never_built(history: History, epoch: Epoch) -> bool:
    """Whether building the loader raised in an earlier epoch, so that there was nothing to iterate in this one."""
    raised = history.of(Kind.RAISED)
    built = [history.logical(event) for event in raised[raised["flags"] == Where.FACTORY]]
    return Stop.NEVER_BEGAN in epoch.stops and any(number is not None and number < epoch.number for number in built)


def _after(history: History, ledger: Ledger, number: int) -> str:
    """After what an epoch began."""
    phase, _ = history.logical_epochs[number][0]
    before, _ = history.logical_epochs[number - 1][-1]
    if phase != before and not keeps_loader(history.spec.phases, before):
        return "of another loader in the same process" if history.spec.phases[phase].same_process else "in a new process"
    return "after an early break" if Stop.BROKE in ledger.epochs[number - 1].stops else "after the first"
