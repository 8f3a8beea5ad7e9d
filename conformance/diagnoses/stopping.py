"""Diagnoses of loaders that stop at the first error, and lose more than what comes after it."""

from __future__ import annotations

import numpy as np

from ..checks.base import count, spans
from ..judging.ledger import Fate, Stop
from ..judging.stops import before_the_damage
from .base import diagnosis
from .case import Case


@diagnosis(
    "stop-takes-what-was-before",
    cause="The loader stops at an error and throws away the batches that it had read before it.",
    fix="Deliver what was read before the error first, and raise when the damaged batch is asked for.",
    explains=("no-lost-batches",),
    before=("worker-left-at-first-error",),
)
def stop_takes_what_was_before(case: Case) -> str | None:
    if case.expected.goes_on:
        return None
    before = before_the_damage(case.history, case.epoch, case.expected, case.reads)
    lost = np.flatnonzero((case.epoch.fate == Fate.LOST) & before)
    damaged = case.faults
    if not len(lost) or not len(damaged):
        return None
    return (
        f"{count(len(lost), 'good sample')} ({spans(lost)}) were read in batches before the one of sample {damaged[0]['sample']}, and "
        "were never delivered"
    )


@diagnosis(
    "stop-ends-other-ranks",
    cause="An error in the share of one rank ends the epoch of another rank, without an error there.",
    fix="Raise only on the rank whose sample is damaged, and let the others go on with their shares.",
    explains=("no-lost-batches",),
    before=("worker-left-at-first-error",),
)
def stop_ends_other_ranks(case: Case) -> str | None:
    if case.expected.goes_on or case.ranks < 2:
        return None
    lost = int(np.count_nonzero(case.epoch.fate == Fate.LOST))
    quiet = [r for r, errors in enumerate(case.epoch.errors) if not errors and case.epoch.stops[r] is Stop.END]
    loud = [r for r, errors in enumerate(case.epoch.errors) if errors]
    if not lost or not quiet or not loud:
        return None
    least = min(quiet, key=lambda rank: case.epoch.batches[rank])
    return (
        f"rank {loud[0]} met the damaged sample and raised, and rank {least} ended without an error after "
        f"{count(case.epoch.batches[least], 'batch')}: {count(lost, 'good sample')} did not come"
    )
