"""How long a trial waited before it was cut, and whether that is long enough to blame the loader."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...harness.faults import Effect
from ...harness.trial import endings
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from ...harness.trial.spec import CLOSE_WITHIN_S

SURFACES_WITHIN_S = 10.0
"""Seconds within which the death of a worker must reach the consumer as an error."""
RETURNS_WITHIN_S = 5.0
"""A call of ``next()`` that had waited for less when the deadline came may only have been slow."""


def grace_s(timeout: float) -> float:
    """The maximum number of seconds between a loader's timeout and the error of a hung read."""
    return max(1.0, timeout / 2)


def waited_s(history: History, since: Any) -> float:
    """Seconds from an event to the end of the trial; 0 for a trial that was not cut."""
    if history.ended.cut not in endings.HUNG:
        return 0.0
    return max(0.0, (_cut_at(history) - int(since["time"])) / 1e9)


def _cut_at(history: History) -> int:
    if history.ended.cut_at is not None:
        return history.ended.cut_at
    events = history.events["time"]  # a record of an earlier version: a trial ends soon after it was cut
    return int(events.min() + history.ended.seconds * 1e9) if len(events) else 0


def waited_longer(history: History, since: Any, seconds: float) -> bool:
    """Whether a trial that was cut had waited for longer than this many seconds, or is proved never to end."""
    return history.ended.cut in endings.HUNG and (bool(history.ended.why) or waited_s(history, since) > seconds)


def too_short(history: History) -> str:
    """Why the deadline of a trial was too short for what was waited for at its end; empty: it was not."""
    if history.ended.cut != endings.OUT_OF_TIME:
        return ""
    for rank in range(history.spec.most_ranks):
        what, needed, waited = pending(history, rank)
        if waited < needed:
            least = math.ceil(history.spec.deadline_s - waited + needed) + 1
            return (
                f"the deadline of {history.spec.deadline_s:g} s was too short: {what} may take {needed:g} s, and the trial was cut "
                f"after {waited:.1f} s of it; use --deadline {least} or more"
            )
    return ""


def pending(history: History, rank: int) -> tuple[str, float, float]:
    """What the consumer of a rank waited for at the end, the seconds that it may take, and those that it took."""
    mine = history.of(
        Kind.EPOCH, Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, Kind.EPOCH_DONE, Kind.CLOSING, Kind.CLOSED, Kind.WAITED, rank=rank
    )
    if not len(mine):
        return "", 0.0, 0.0
    last = mine[-1]
    if last["kind"] == Kind.CLOSING:
        return "closing", CLOSE_WITHIN_S, waited_s(history, last)
    if last["kind"] == Kind.CLOSED and last["flags"]:
        return "what follows closing", CLOSE_WITHIN_S, waited_s(history, last)
    if last["kind"] not in (Kind.ASK, Kind.EPOCH):
        return "", 0.0, 0.0
    deaths = [s for s, fault in history.spec.plan.items() if fault.effect is Effect.CRASH]
    struck = history.of(Kind.FAULT, rank=rank)
    struck = struck[np.isin(struck["sample"], deaths)]
    if len(struck):
        return "the news of a worker's death", SURFACES_WITHIN_S, waited_s(history, struck[0])
    if history.spec.timeout_s:
        timeout = history.spec.timeout_s
        return "a timeout", timeout + grace_s(timeout), waited_s(history, last)
    return "a call of next()", RETURNS_WITHIN_S, waited_s(history, last)
