"""Whether a loader gives shared memory fixed names, so that two of its trials would meet in ``/dev/shm``."""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import re
import time

from ...harness.processes.shared_memory import SHARED_MEMORY, may_be_temporary
from ...harness.trial.history import Ended, History

_TURN_WITHIN_S = 120.0


class SharedNames:
    """Learns from trials that were watched which names they make, and says how the others must be run.

    Args:
        possible: whether a trial can have a ``/dev/shm`` of its own.
    """

    def __init__(self, possible: bool) -> None:
        self.possible = possible
        self.found: tuple[str, ...] = ()
        """Fixed names of the loader; empty: none is known."""
        self._windows: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
        self._turn: int | None = None
        self._waits_since: float | None = None

    def learn(self, history: History, *, wanted_private: bool) -> None:
        """Take the names that appeared during a trial into account. A name is fixed if two trials made it.

        Two trials that ran at the same time in the common ``/dev/shm`` see each other's names, so they do not count as two. One
        trial is enough if it had a ``/dev/shm`` of its own: then no other program made the name, and a mount for each trial costs
        little, also if the name is not fixed after all.
        """
        ended = history.ended
        if wanted_private and not ended.private:
            self.possible = False
        pids = {str(pid) for pid in set(history.events["pid"].tolist())}
        names = [name for name in ended.segments if not pids & set(re.findall(r"\d+", name))]
        fixed = {name for name in names if (ended.private and not may_be_temporary(name)) or self._again(name, ended)}
        for name in names:
            self._windows[name].append(ended.watched)
        self.found = tuple(sorted({*self.found, *fixed}))

    def _again(self, name: str, ended: Ended) -> bool:
        """Whether a name appeared in another trial too, which could not see that of this one."""
        begun, over = ended.watched
        return any(ended.private or before[1] < begun or over < before[0] for before in self._windows[name])

    @property
    def one_at_a_time(self) -> bool:
        """Whether trials must not overlap."""
        return bool(self.found) and not self.possible

    @property
    def about(self) -> str:
        """How trials are run because of it, in one line; empty: as usual."""
        if not self.found:
            return ""
        more = f" and {len(self.found) - 2} more" if len(self.found) > 2 else ""
        names = f"the loader makes shared memory with fixed names ({', '.join(self.found[:2])}{more})"
        if self.possible:
            return f"each trial has its own {SHARED_MEMORY}: {names}"
        return f"trials run one at a time: {names}, and a trial cannot have its own {SHARED_MEMORY} here"

    def take_turn(self) -> bool:
        """Whether a trial may start now: no other process of this machine runs one that must not overlap with others."""
        if self._turn is not None:
            return True
        now = time.monotonic()
        self._waits_since = now if self._waits_since is None else self._waits_since
        descriptor = os.open(SHARED_MEMORY, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel releases it when its owner dies
        except OSError:
            if now - self._waits_since < _TURN_WITHIN_S:
                os.close(descriptor)
                return False
        self._turn, self._waits_since = descriptor, None
        return True

    def give_back_turn(self) -> None:
        """Let other processes start theirs."""
        if self._turn is not None:
            with contextlib.suppress(OSError):
                os.close(self._turn)
            self._turn = None
