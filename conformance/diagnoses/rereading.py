"""Likely causes of reads that are not needed."""

from __future__ import annotations

import numpy as np

from ..checks.base import count, was
from ..judging.raised import may_pass
from .base import diagnosis
from .case import Case

_READS = ("bounded-reads",)


@diagnosis(
    "read-before-delivery",
    cause="Each sample is read once to check it, and once more to deliver it.",
    fix="Deliver what the first read returned.",
    explains=_READS,
)
def read_before_delivery(case: Case) -> str | None:
    good = case.done[case.done["flags"] == 0]
    pids = {int(sample): set(good["pid"][good["sample"] == sample].tolist()) for sample in np.unique(good["sample"])}
    reads = np.bincount(good["sample"], minlength=case.spec.samples)
    twice = [sample for sample, readers in pids.items() if len(readers) == 1 and reads[sample] > max(1, case.epoch.arrivals[sample])]
    if len(twice) < 2 or len(twice) * 2 < len(pids):
        return None
    return f"{count(len(twice), 'sample')} {was(len(twice))} read {int(reads[twice[0]])} times by the same process, without an error"


@diagnosis(
    "final-error-retried",
    cause="A read is tried again after every error, also after one that will occur again.",
    fix="Try again only after errors of the storage (OSError, a timeout), and raise all others at once.",
    explains=_READS,
)
def final_error_retried(case: Case) -> str | None:
    failed = case.done[case.done["flags"] == 1]
    for sample in np.unique(failed["sample"]):
        mine = failed[failed["sample"] == sample]
        name = case.history.text(mine[0], "type").removeprefix("builtins.")
        if len(mine) > 1 and not may_pass(name):
            return f"sample {int(sample)} was read {len(mine)} times, and each read raised {name}"
    return None
