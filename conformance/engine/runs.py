"""Queues the runs of trials in a pool, as the policy wants them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator

from ...harness.trial.spec import TrialSpec
from .exchange import Exchange
from .policy import Policy, gates
from .pool import Pool
from .tasks import Done, Task
from .trial_state import TrialState


class Runs:
    """The queued and running trials of one suite.

    Args:
        exchange: knows which trials another process runs.
    """

    def __init__(self, pool: Pool, policy: Policy, exchange: Exchange) -> None:
        self._pool = pool
        self._policy = policy
        self._exchange = exchange
        self._tasks: dict[Task, TrialState] = {}

    def submit_all(self, states: Iterable[TrialState]) -> None:
        """Queue all runs of some trials; those that must wait for a clean trial are queued when that has ended."""
        for state in states:
            if not self._policy.blocked(state):
                self.submit(state, state.wanted)

    def submit(self, state: TrialState, times: int = 1, *, alone: bool = False, first: bool = False) -> None:
        """Queue runs of a trial.

        Args:
            alone: nothing else is started while it runs.
            first: before all others, as a failure is confirmed at once.
        """
        order = self._policy.order(state, first=first)
        for _ in range(times):
            task = Task(lambda: None, waits=state.waits, alone=alone, order=order, gate=gates(state.spec))
            task.begin = functools.partial(self._begin, state, task)
            self._tasks[task] = state
            self._pool.submit(task)

    def _begin(self, state: TrialState, task: Task) -> TrialSpec | None:
        """The next run of a trial; None if another process runs it, or it was cut."""
        if state.result is not None or state.over or not self._exchange.runs_here(state):
            del self._tasks[task]
            return None
        if not state.started:
            state.spec = self._policy.with_timeout(state.spec)
        task.begins_s = self._policy.begins_s(state.spec)
        state.started += 1
        return dataclasses.replace(state.spec, repeat=state.spec.repeat + state.started - 1)

    def drop(self, state: TrialState) -> None:
        """End all runs of a trial, and start none of those that are queued."""
        for task in [task for task, of in self._tasks.items() if of is state]:
            del self._tasks[task]
            self._pool.drop(task)

    def ended(self) -> Iterator[tuple[TrialState, Done]]:
        """Start what can be started, wait a moment, and yield the runs that have ended.

        Raises:
            HarnessError: the zygote was killed too often.
            OSError: the temporary folder cannot be written to.
        """
        for done in self._pool.advance():
            yield self._tasks.pop(done.task), done
