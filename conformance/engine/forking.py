"""Whether trials may be forks of the process that imported the loader: its clean trials show it."""

from __future__ import annotations

from ...harness.trial import endings
from ...harness.trial.history import History
from ...harness.trial.spec import Topology
from ..judging.deaths import FROM_OUTSIDE


class Forking:
    """What is known about forks of one loader's process.

    Some libraries do not survive a fork: a lock or a connection that their import made belongs to the process that was forked.
    A loader that stalls or crashes without any fault is therefore tried in a fresh interpreter before anything is reported.
    """

    def __init__(self) -> None:
        self.why = ""
        """Why trials are run in fresh interpreters; empty: they may be forks."""
        self._tried: set[tuple[str, Topology]] = set()

    def doubts(self, history: History) -> bool:
        """Whether a clean trial, which was a fork, must be run in a fresh interpreter as well; once for each source and topology."""
        cell = history.spec.source, history.spec.topology
        if cell in self._tried or not fails(history):
            return False
        self._tried.add(cell)
        return True

    def compare(self, forked: History, fresh: History) -> bool:
        """Learn from a trial that was run both ways; whether the fork was at fault."""
        if fresh.complete and not fails(fresh):
            how = "stalls" if forked.ended.cut in endings.HUNG else "is killed by a signal"
            self.why = (
                f"{forked.spec.id} {how} in a fork of the process that imported the loader, and runs to its end in a fresh "
                "interpreter: its library does not survive a fork"
            )
        return bool(self.why)


def fails(history: History) -> bool:
    """Whether a trial ended as one can whose library does not survive a fork: it hung, or a signal of its own killed it."""
    ended = history.ended
    return ended.cut in endings.HUNG or any(code is not None and code < 0 and -code not in FROM_OUTSIDE for code in ended.ranks)
