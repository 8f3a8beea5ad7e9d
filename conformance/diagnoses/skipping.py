"""Likely causes of a budget of skips that is not kept."""

from __future__ import annotations

import numpy as np

from ..checks.base import count
from .base import diagnosis
from .case import Case

_BUDGET = ("skip-budget",)


@diagnosis(
    "skips-not-limited",
    cause="Damaged samples are skipped without a limit.",
    fix="Count the skips in a row, and raise when there are more than job.max_consecutive_skips.",
    explains=_BUDGET,
)
def skips_not_limited(case: Case) -> str | None:
    struck = len(np.unique(case.faults["sample"]))
    damaged = int(np.count_nonzero(case.expected.damaged))
    if any(case.epoch.errors) or struck < damaged:
        return None
    return f"all {count(damaged, 'damaged sample')} were read and skipped, and no error was raised"


@diagnosis(
    "skips-end-silently",
    cause="The epoch ends without an error when too many samples in a row were skipped.",
    fix="Raise an error that says how many there were, in place of ending the iteration.",
    explains=_BUDGET,
)
def skips_end_silently(case: Case) -> str | None:
    struck = np.unique(case.faults["sample"])
    if any(case.epoch.errors) or not len(struck) or not case.epoch.whole:
        return None
    later = case.epoch.arrivals[int(struck.max()) + 1 :]
    if not len(later) or later.any():
        return None
    return f"the epoch ended after {count(len(struck), 'damaged sample')}, and no sample after {int(struck.max())} arrived"


@diagnosis(
    "skips-counted-in-total",
    cause="The skips of the whole epoch are counted, and not those in a row.",
    fix="Begin a new count at each good sample.",
    explains=_BUDGET,
)
def skips_counted_in_total(case: Case) -> str | None:
    limit = case.spec.max_consecutive_skips
    raised = case.raised()
    if limit is None or not len(raised):
        return None
    met = np.unique(case.faults["sample"][case.faults["time"] <= raised[0]["time"]])
    row = int(np.argmax(np.append(np.diff(met)[::-1] > 1, True))) + 1  # of the last ones, without a gap
    if len(met) != limit + 1 or row > limit:
        return None
    return f"the error came at damaged sample number {len(met)} of the epoch, and only {row} of them were in a row"
