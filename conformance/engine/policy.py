"""What is run when, and what a trial is worth: the clean gate, the confirmation of failures, and what must run alone.

Decides from the states of trials and from recorded histories. Starts nothing, and waits for nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import enum

import numpy as np

from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.spec import Topology, TrialSpec
from ..judging.accounting import account
from ..judging.deaths import death
from ..judging.doubts import disturbance
from ..judging.expectation import expect
from ..judging.ledger import Fate, Stop
from ..judging.raised import first_error
from ..judging.verdict import Mark, Verdict
from .calibration import Calibration, calibrate
from .questions import CLEAN
from .trial_state import TrialState

CONFIRM = 2  # a failing trial is run this often, to confirm it

Cell = tuple[str, Topology]


class Next(enum.Enum):
    """What follows from one run of a trial."""

    ALONE = "alone"  # discard this run, and run the trial again with nothing beside it
    AGAIN = "again"  # run it once more, at once: a failure is confirmed
    MORE = "more"  # other runs of it are queued already
    RESULT = "result"  # it has run as often as it should


class Policy:
    """Decides from what was seen of each cell (a source in a topology) so far.

    Args:
        confirm: the minimum number of runs of a failing trial.
    """

    def __init__(self, confirm: int = CONFIRM) -> None:
        self._confirm = confirm
        self._clean: dict[Cell, str] = {}
        self._calibrated: dict[Cell, Calibration] = {}
        self._blocked: dict[Cell, list[TrialState]] = collections.defaultdict(list)

    def blocked(self, state: TrialState) -> bool:
        """Whether a trial must wait for the clean trial of its cell; if so, :meth:`seen` returns it later."""
        spec = state.spec
        at_stake = bool(spec.plan) or spec.timeout_s > 0
        if gates(spec) or not at_stake or _cell(spec) in self._clean:
            return False
        self._blocked[_cell(spec)].append(state)
        return True

    def order(self, state: TrialState, *, first: bool = False) -> int:
        """The lower, the earlier a run is started: clean trials, since the others depend on them, then those that wait longest.

        Args:
            first: it confirms a failure, and comes before all others.
        """
        return -2 if first else -1 if gates(state.spec) else 0 if state.waits else 1

    def seen(self, history: History) -> list[TrialState]:
        """Learn from a trial that has ended; returns the trials that waited for it."""
        spec = history.spec
        cell = _cell(spec)
        if not gates(spec) or cell in self._clean:
            return []
        self._clean[cell] = not_clean(history)
        self._calibrated[cell] = calibrate(history)
        return self._blocked.pop(cell, [])

    def unseen(self, spec: TrialSpec, why: str) -> list[TrialState]:
        """A trial will have no history. If it is the clean one, returns the trials that waited for it."""
        cell = _cell(spec)
        if not gates(spec) or cell in self._clean:
            return []
        self._clean[cell] = f"the clean scenario has no result in this topology: {why}"
        return self._blocked.pop(cell, [])

    def spoiled(self, spec: TrialSpec) -> str:
        """Why the loader cannot be judged in this cell, from its clean trial; empty: it can."""
        return self._clean.get(_cell(spec), "")

    def begins_s(self, spec: TrialSpec) -> float:
        """How long the loader takes to its first batch in this cell, in seconds; 0 if that is not known yet."""
        return self._calibrated.get(_cell(spec), Calibration()).begin

    def with_timeout(self, spec: TrialSpec) -> TrialSpec:
        """The trial with a timeout that is longer than the loader's start, on this machine and under its present load."""
        calibration = self._calibrated.get(_cell(spec), Calibration())
        timeout = calibration.timeout(spec.timeout_s, most=(spec.deadline_s - 1) / 2)
        if spec.timeout_s <= 0 or timeout == spec.timeout_s:
            return spec
        return dataclasses.replace(spec, timeout_s=timeout, step_s=spec.step_s * timeout / spec.timeout_s)

    def after(self, state: TrialState, history: History, verdicts: list[Verdict], *, failed: bool, alone: bool) -> Next:
        """Record one run of a trial, and decide what follows.

        Args:
            failed: whether a selected check failed.
            alone: whether no other trial was started while it ran.
        """
        if failed and not alone and state.hurries:  # other trials may have used the time
            return Next.ALONE
        state.runs.append((history, verdicts))
        if failed and state.wanted < self._confirm:
            state.wanted = self._confirm
            return Next.AGAIN
        return Next.RESULT if len(state.runs) == state.wanted else Next.MORE


def gates(spec: TrialSpec) -> bool:
    """Whether the other trials of its cell wait for this one: it decides what they are worth."""
    return spec.scenario == CLEAN


def replaces_record(state: TrialState, *, failed: bool) -> bool:
    """Whether the folder of the last run is kept in place of an earlier one: a pass must not replace the record of a failure."""
    return failed or not any(verdict.mark is Mark.FAIL for _, earlier in state.runs[:-1] for verdict in earlier)


def not_clean(history: History) -> str:
    """Why a loader that did this in the clean scenario cannot be judged in any other; empty: it can."""
    if why := disturbance(history):
        return f"the clean scenario has no result in this topology: {why}"
    epoch = account(history, expect(history.spec)).first
    wrong = []
    dead = next((how for rank in range(history.spec.topology.ranks) if (how := death(history, rank))), "")
    if dead:
        wrong.append(f"ends its own process (it {dead})")
    elif np.any(history.of(Kind.RAISED)["flags"] == Where.FACTORY):
        wrong.append("cannot be built")
    elif Stop.NEVER_BEGAN in epoch.stops:
        wrong.append("cannot be iterated")
    elif not epoch.whole:
        wrong.append("never ends")
    if len(epoch.having(Fate.LOST)):
        wrong.append("loses samples")
    if len(epoch.having(Fate.DUPLICATED)):
        wrong.append("doubles samples")
    if wrong and any(epoch.errors):
        wrong.insert(0, f"raises {first_error(history)}")
    return f"the loader {' and '.join(wrong)} already in the clean scenario" if wrong else ""


def _cell(spec: TrialSpec) -> Cell:
    return spec.source, spec.topology
