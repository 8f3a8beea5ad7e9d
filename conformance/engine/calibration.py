"""How fast a loader is when nothing is wrong, measured in its clean trial: a timeout must allow at least this."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ...harness.trial.event_log import Kind
from ...harness.trial.history import History

_ALLOWANCE = 2.0
"""A timeout is this many times the longest wait of the clean trial: other trials may start meanwhile, and a read may be
slow."""
_STEP_S = 0.5


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What was measured of one loader in one topology, in seconds."""

    begin: float = 0.0
    """From the start of the trial to the first batch of the last rank."""
    wait: float = 0.0
    """The longest call of ``next()``: usually the first, which starts the workers."""

    def timeout(self, wanted: float, most: float) -> float:
        """The timeout for the loader: ``wanted``, or longer if starting takes longer here; at most ``most``."""
        needed = math.ceil(_ALLOWANCE * self.wait / _STEP_S) * _STEP_S
        return wanted if needed <= wanted else max(wanted, min(needed, most))


def calibrate(history: History) -> Calibration:
    """Measure a trial in which nothing was wrong."""
    events = history.events
    if not len(events):
        return Calibration()
    start = int(events["time"].min())
    begin = wait = 0
    for rank in range(history.spec.topology.ranks):
        calls = history.of(Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, rank=rank)
        got = calls[calls["kind"] == Kind.GOT]
        if len(got):
            begin = max(begin, int(got["time"][0]) - start)
        asked = np.flatnonzero(calls["kind"][:-1] == Kind.ASK)
        if len(asked):
            wait = max(wait, int((calls["time"][asked + 1] - calls["time"][asked]).max()))
    return Calibration(begin / 1e9, wait / 1e9)
