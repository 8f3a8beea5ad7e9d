"""Proof that a trial will not end: one sample is read again and again, and the consumer gets nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..trial.event_log import RECORD, Kind

MOST_READS = 100
"""Reads of one sample without any action of the consumer: more than any loader that tries again and then gives up."""
MOST_PROCESSES = 20
"""The same for processes that each read it once: a loader that starts a new worker for each worker that dies of the
sample."""
_FEW = 3  # reads of a sample that count as progress: a loader may try again
_OF_READERS = (Kind.READ, Kind.READ_DONE, Kind.FAULT, Kind.SKIPPED, Kind.DELAY)
_AT_ONCE = 1 << 22  # bytes of the record that are read at once


class Rereads:
    """Follows the record of one rank while it is written.

    Args:
        path: the events of the rank; the file need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._reads: dict[int, int] = {}
        self._readers: dict[int, set[int]] = {}
        self.since_ns = 0
        """When the consumer last did something, on the clock of the events."""

    def look(self) -> bool:
        """Read what is new; return whether it contains anything but samples that were read before.

        A reader that reads a sample again, after several reads, makes no progress.
        """
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._at = max(self._at, (size - _AT_ONCE) // RECORD.itemsize * RECORD.itemsize)
                file.seek(self._at)
                data = file.read(_AT_ONCE)
        except FileNotFoundError:
            return False
        events = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
        self._at += events.nbytes
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

