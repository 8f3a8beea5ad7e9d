"""Diagnoses of errors that the loader raises and that end the epoch or lose samples."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind, Where
from ..checks.base import count
from ..judging.raised import DURING_EPOCH, quoted
from .base import diagnosis
from .case import Case

_COSTS = ("no-lost-batches", "contract-kept", "full-batches", "ranks-in-step", "fresh-epoch", "honest-length")


@diagnosis(
    "own-error",
    cause="The loader raises an error of its own, which no damaged sample explains.",
    fix="Fix this error first, since what is lost with it follows from it.",
    explains=(*_COSTS, "finite-epoch"),
    before=(
        "false-end",
        "drop-last-per-worker",
        "batched-per-worker",
        "rank-and-worker-composed-wrongly",
        "exhausted-after-one-epoch",
        "remainder-not-evened-out",
    ),
)
def own_error(case: Case) -> str | None:
    plan = case.spec.plan
    if plan and not case.expected.truth.reads_recorded:
        return None  # the damaged file may have been read without a record
    raised = case.history.of(Kind.RAISED)
    raised = raised[np.isin(raised["flags"], DURING_EPOCH)]
    if not len(raised):
        return None
    first = raised[int(np.argmin(raised["time"]))]
    if np.any(case.history.of(Kind.FAULT)["time"] <= first["time"]):
        return None  # of any rank: an error there may reach the others
    unprovoked = "before any fault took hold" if plan else "although nothing is damaged"
    return f"{quoted(case.history, first)} came {_call(case, first)}, {unprovoked}{_cost(case)}"


@diagnosis(
    "ends-with-error",
    cause="The epoch ends with an error, although the loader promises to go on after it.",
    fix="Catch the error of one sample where that sample is read, and go on with the next one; or declare after_error=\"stop\".",
    explains=_COSTS,
    before=("batch-lost-worker-alive",),
)
def ends_with_error(case: Case) -> str | None:
    error = case.ends_with
    if error is None or not case.lost.any():
        return None
    return f"{quoted(case.history, error)} came {_call(case, error)}, and no batch after it{_cost(case)}"


def _call(case: Case, error: np.void) -> str:
    of_rank = f" on rank {error['rank']}" if case.ranks > 1 else ""
    if error["flags"] == Where.ITER:
        return f"in iter(){of_rank}"
    between = "after" if error["flags"] == Where.OUTSIDE else "in"
    return f"{between} call {int(error['sample']) + 1} of next(){of_rank}"


def _cost(case: Case) -> str:
    lost = int(np.count_nonzero(case.lost))
    return f": {count(lost, 'good sample')} did not come" if lost else ""
