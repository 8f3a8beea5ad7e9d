"""Likely causes of differences between the trials of a relation."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind
from ..checks.base import count, spans
from ..judging.ledger import Fate
from .base import diagnosis
from .comparison import Comparison

_BY_NUMBER_OF_WORKERS = ("worker-count-invariant",)


@diagnosis(
    "share-rounded-down",
    cause="Each worker takes the number of samples divided by the number of workers, rounded down: the rest belongs to no worker.",
    fix="Give the rest to some of the workers, as range(worker, samples, workers) does.",
    explains=_BY_NUMBER_OF_WORKERS,
)
def share_rounded_down(comparison: Comparison) -> str | None:
    for trial, lost in comparison.lost_with_workers():
        samples, workers = trial.spec.samples, trial.spec.topology.workers
        read = trial.history.of(Kind.READ)["sample"]
        if trial.spec.topology.ranks == 1 and len(lost) == samples % workers and not np.isin(lost, read).any():
            share = f"each of {workers} workers takes {samples // workers} of {count(samples, 'sample')}"
            return f"{share}, and no worker reads the rest ({spans(lost)})"
    return None


@diagnosis(
    "remainder-depends-on-workers",
    cause="The remainder is left out at another place of the order where there are workers.",
    fix="Leave the remainder out before the batches are given to workers, in the same way for any number of them.",
    explains=_BY_NUMBER_OF_WORKERS,
)
def remainder_depends_on_workers(comparison: Comparison) -> str | None:
    first = comparison.by_workers[0]
    for trial, lost in comparison.lost_with_workers():
        if np.all(trial.ledger.first.fate[lost] == Fate.DROPPED):
            workers = count(trial.spec.topology.workers, "worker")
            before = first.ledger.first.having(Fate.DROPPED)
            return f"with {workers} {spans(lost)} are left out as the remainder, and {spans(before) or 'none'} with fewer"
    return None
