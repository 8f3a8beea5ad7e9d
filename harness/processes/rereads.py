"""Proof that a trial will not end: one sample is read again and again, and the consumer gets nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..trial.event_log import Kind
from .following import Follower

MOST_READS = 100
"""Reads of one sample without any action of the consumer: more than any loader that tries again and then gives up."""
MOST_PROCESSES = 20
"""The same for processes that each read it once: a loader that starts a new worker for each worker that dies of the
sample."""
_FEW = 3  # reads of a sample that count as progress: a loader may try again
_OF_READERS = (Kind.READ, Kind.READ_DONE, Kind.FAULT, Kind.SKIPPED, Kind.DELAY)


class Rereads:
    """Follows the record of one rank while it is written.

    Args:
        path: the events of the rank; the file need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._log = Follower(path, skips=True)
        self._reads: dict[int, int] = {}
        self._readers: dict[int, set[int]] = {}
        self.since_ns = 0
        """When the consumer last did something, on the clock of the events."""

    def look(self) -> bool:
        """Read what is new; return whether it contains anything but samples that were read before.

        A reader that reads a sample again, after several reads, makes no progress.
        """
        events = self._log.new()
        if not len(events):
            return False
        own = np.flatnonzero(~np.isin(events["kind"], _OF_READERS))
        progress = len(own) > 0
        if progress:
            self._reads.clear()
            self._readers.clear()
            self.since_ns = int(events["time"][own[-1]])
            events = events[own[-1] + 1 :]
        reads = events[events["kind"] == Kind.READ]
        for sample, pid in zip(reads["sample"].tolist(), reads["pid"].tolist(), strict=True):
            self._reads[sample] = self._reads.get(sample, 0) + 1
            self._readers.setdefault(sample, set()).add(pid)
            progress |= self._reads[sample] <= _FEW
        return progress

    def endless(self) -> str:
        """The proof that the trial will not end, in words; empty: there is none."""
        for sample, times in self._reads.items():
            processes = len(self._readers[sample])
            if processes >= MOST_PROCESSES:
                return f"sample {sample} was read by {processes} processes, one after the other, and the consumer got nothing"
            if times >= MOST_READS:
                return f"sample {sample} was read {times} times, and the consumer got nothing"
        return ""

