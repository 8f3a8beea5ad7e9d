"""What one process of several that share a suite gives to the others, and takes from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from ..judging.verdict import Mark
from ..report.result import TrialResult
from .claims import Claims
from .policy import CONFIRM, gates
from .trial_state import TrialState


class Exchange:
    """Decides trial by trial who runs it, and passes results and records on. Alone, a process runs everything itself.

    Each process runs the clean trials itself: they are cheap, and its other trials wait for them. Their records are still kept by
    only one process.

    Args:
        folder: through which the processes share the suite; None: there is one process.
    """

    def __init__(self, loader: str, folder: Path | None) -> None:
        self._loader = loader
        self._claims = None if folder is None else Claims(folder)

    @property
    def alone(self) -> bool:
        """Whether no other process shares the suite."""
        return self._claims is None

    def stop(self) -> None:
        """Share nothing from now on."""
        self._claims = None

    def runs_here(self, state: TrialState) -> bool:
        """Whether this process should run a trial; claims it if nobody has."""
        if self._claims is not None and not state.claimed:
            state.claimed = self._claims.claim(state.spec)
            state.keeps = state.claimed
            state.elsewhere = not state.claimed and not gates(state.spec)
        return not state.elsewhere

    def tell(self, state: TrialState) -> None:
        """Give a result to the other processes; if one of them was first, use its result."""
        if self._claims is None or state.result is None or gates(state.spec):
            return
        self._claims.tell(state.result)
        self._take_result(state, self._claims)

    def result(self, state: TrialState) -> TrialResult | None:
        """The result of a trial that another process has run, if there is one."""
        return None if self._claims is None else self._claims.result(self._loader, state.spec)

    def share(self, state: TrialState) -> None:
        """Give the records of a trial to the other processes, if one of their relations may need them."""
        if self._claims is not None and state.own is not None and state.needed_by and not gates(state.spec):
            self._claims.share(state.own, state.records)

    def fetch(self, state: TrialState) -> list[TrialState]:
        """Take the result of a trial that another process runs; returns the trial if it must be run here after all."""
        if self._claims is None or not state.elsewhere or self._take_result(state, self._claims):
            return []
        return [state] if self._is_abandoned(state, self._claims) else []

    def borrow(self, waiting: Iterable[TrialState]) -> list[TrialState]:
        """Take the records of trials that run elsewhere, and for which relations wait here.

        Args:
            waiting: the trials whose relations wait.

        Returns:
            The trials that must be run here after all.
        """
        if self._claims is None:
            return []
        others = [other for state in waiting for asked in state.asked if asked.wanted for other in asked.roles.values()]
        return [other for other in others if other.elsewhere and not other.over and self._borrow(other, self._claims)]

    def _borrow(self, other: TrialState, claims: Claims) -> bool:
        """Take the records of one trial, or the reason why it has none; returns whether it must be run here."""
        found = claims.shared(self._loader, other.spec)
        if found is not None and found[1]:
            other.own, other.records, other.over = dataclasses.replace(found[0], spec=other.spec), found[1], True
        elif (told := claims.result(self._loader, other.spec)) is not None:
            other.absent = Mark.INCONCLUSIVE, told.verdicts[0].reason if told.verdicts else told.ended
        else:
            return self._is_abandoned(other, claims)
        return False

    def _take_result(self, state: TrialState, claims: Claims) -> bool:
        found = claims.result(self._loader, state.spec)
        if found is not None:
            state.result = dataclasses.replace(found, spec=state.spec)
        return found is not None

    def _is_abandoned(self, state: TrialState, claims: Claims) -> bool:
        """Whether the process that claimed a trial must be gone; if so, this process has claimed it."""
        if not claims.overdue(state.spec, CONFIRM * state.wanted):
            return False
        state.elsewhere, state.keeps, state.claimed = False, True, True
        return True
