"""The order of trials, which are run again, and what a trial is worth: the clean gate and the confirmation."""

from __future__ import annotations

import collections
import dataclasses
import enum

from ...harness.trial.history import History
from ...harness.trial.spec import Topology, TrialSpec
from ..judging.verdict import Verdict
from .calibration import Calibration, calibrate
from .questions import CLEAN
from .trial_state import TrialState, not_clean

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
        if spec.scenario == CLEAN or not at_stake or _cell(spec) in self._clean:
            return False
        self._blocked[_cell(spec)].append(state)
        return True

    def seen(self, history: History) -> list[TrialState]:
        """Learn from a trial that has ended; returns the trials that waited for it."""
        spec = history.spec
        cell = _cell(spec)
        if spec.scenario != CLEAN or cell in self._clean:
            return []
        self._clean[cell] = not_clean(history)
        self._calibrated[cell] = calibrate(history)
        return self._blocked.pop(cell, [])

    def unseen(self, spec: TrialSpec, why: str) -> list[TrialState]:
        """A trial will have no history. If it is the clean one, returns the trials that waited for it."""
        cell = _cell(spec)
        if spec.scenario != CLEAN or cell in self._clean:
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


def _cell(spec: TrialSpec) -> Cell:
    return spec.source, spec.topology
