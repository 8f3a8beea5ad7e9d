"""Checks on budgets: how many damaged samples in a row are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...harness.contract.job import Contract
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from ..judging.raised import DURING_EPOCH, last_line, quoted
from .base import Violation, check, count


def _limits(contract: Contract, spec: TrialSpec) -> str | None:
    return None if contract.skip_budget else "the loader does not declare skip_budget=True"


@check(
    "skip-budget",
    title="Too many damaged samples in a row end in an error",
    why="A mount that is gone looks like damage without end: a loader that skips it all reports a finished epoch without any data.",
    source="Job.max_consecutive_skips; DESIGN of badbatch",
    exercised=lambda spec: spec.max_consecutive_skips is not None,
    needs=_limits,
    implies=("contract-kept", "no-lost-batches", "exact-skip-count", "full-batches", "honest-length", "error-names-sample"),
)
def skip_budget(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """k in a row are skipped, a good sample begins a new count, and k + 1 raise an error that says how many they were.

    Several readers may each count on their own: then nothing is required between k in a row and k for each reader.
    """
    limit = expected.skip_limit
    if limit is None:
        return
    for epoch in ledger.epochs:
        raised = history.of(Kind.RAISED, epoch=epoch.number)
        raised = raised[np.isin(raised["flags"], DURING_EPOCH)]
        if not len(raised):
            if expected.must_give_up and epoch.whole:
                yield Violation(
                    f"an error after more than {count(limit, 'damaged sample')} in a row",
                    f"the epoch ended without an error; {_passed(expected)} in a row",
                )
        elif not expected.may_give_up:
            yield Violation(
                f"up to {count(limit, 'damaged sample')} in a row are skipped, and a good one begins a new count",
                f"the consumer got {quoted(history, raised[0])}",
            )
        else:
            yield from _counted(history, raised[0], limit, expected)


def _passed(expected: Expectation) -> str:
    damaged = int(np.count_nonzero(expected.damaged))
    return f"{damaged} samples were damaged"


def _counted(history: History, raised: Any, limit: int, expected: Expectation) -> Iterator[Violation]:
    """The error comes at the first sample too many, where that can be seen, and has a count in its message."""
    struck = history.of(Kind.FAULT)
    met = len(np.unique(struck["sample"][struck["time"] <= raised["time"]]))
    one_reader = history.spec.topology.workers == 0 and history.spec.topology.ranks == 1
    if one_reader and met != limit + 1:
        yield Violation(
            f"the error comes when {count(limit + 1, 'damaged sample')} in a row were read",
            f"it came after {met}: {quoted(history, raised)}",
        )
    elif not {limit, limit + 1, met} & {int(number) for number in re.findall(r"\d+", last_line(history.text(raised)))}:
        yield Violation("the error says how many damaged samples in a row there were", f"it was {quoted(history, raised)}")
