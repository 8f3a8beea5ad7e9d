"""Follows the event log of one rank while it is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..trial.event_log import HEADER, RECORD, Actor

AT_ONCE = 1 << 22
"""Bytes that are read at once."""


class Follower:
    """Reads what is new in a log.

    Args:
        path: the log; it need not exist yet.
        skips: leave records out if there are more than can be read at once. Otherwise the next call continues.
    """

    def __init__(self, path: Path, *, skips: bool = False) -> None:
        self._path = path
        self._at = HEADER.size
        self._skips = skips

    def new(self) -> npt.NDArray[Any]:
        """The new records of the trial's own processes since the last call."""
        try:
            with self._path.open("rb") as file:
                if self._skips:
                    behind = os.fstat(file.fileno()).st_size - self._at - AT_ONCE
                    self._at += max(0, behind // RECORD.itemsize * RECORD.itemsize)
                file.seek(self._at)
                data = file.read(AT_ONCE)
        except FileNotFoundError:
            return np.empty(0, RECORD)
        events = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
        self._at += events.nbytes
        own: npt.NDArray[Any] = events[events["actor"] != Actor.SUPERVISOR]
        return own
