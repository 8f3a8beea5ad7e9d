"""Sends the signal of a phase when the point of its ``until`` is reached."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..trial.event_log import Actor, Kind, Recorder
from ..trial.phases import Event, Signal
from ..trial.signals import tell_signalled
from ..trial.spec import TrialSpec
from .following import Follower
from .process_tree import descendants

Events = npt.NDArray[Any]


class Sender:
    """Watches the logs of the ranks for the point at which a phase gets its signal, and sends it once.

    Args:
        number: the phase.
        ranks: from the pid of each rank's process to the rank.
    """

    def __init__(self, spec: TrialSpec, number: int, folder: Path, ranks: dict[int, int]) -> None:
        self._phase = spec.phases[number]
        self._number = number
        self._folder = folder
        self._ranks = ranks
        self._logs = [Follower(folder / f"events-{rank}.bin") for rank in sorted(ranks.values())]
        self._reached: set[int] = set()
        self._seen = 0
        self._workers: dict[int, int] = {}
        self.sent = False

    def look(self, recorder: Recorder) -> None:
        """Read what is new in the logs, and send the signal where its point is reached."""
        if self.sent:
            return
        for log in self._logs:
            events = log.new()
            self._note(events[events["phase"] == self._number])
        if self._is_due():
            self._send(recorder)

    def _note(self, events: Events) -> None:
        self._reached.update(events["rank"][events["kind"] == Kind.REACHED].tolist())
        by_workers = events[events["actor"] == Actor.WORKER]
        self._workers.update(zip(by_workers["pid"].tolist(), by_workers["worker"].tolist(), strict=True))
        until = self._phase.until
        if isinstance(until, Event):
            chosen = events["kind"] == Kind[until.kind.upper()]
            for field, value in (("sample", until.sample), ("rank", until.rank)):
                if value is not None:
                    chosen &= events[field] == value
            self._seen += int(np.count_nonzero(chosen))

    def _is_due(self) -> bool:
        until = self._phase.until
        if isinstance(until, Event):
            return self._seen >= until.n
        return self._reached == set(self._ranks.values())

    def _send(self, recorder: Recorder) -> None:
        signal = self._phase.then
        assert isinstance(signal, Signal)
        targets = list(self._targets(signal.to))
        recorder(Kind.SIGNALLED, aux=len(targets), flags=signal.signum, pid=targets[0] if targets else 0)
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if signal.to == "group" else os.kill)(pid, signal.signum)
        tell_signalled(self._folder, self._number)
        self.sent = True

    def _targets(self, to: str) -> Iterable[int]:
        if to != "worker":
            return self._ranks
        below = [pid for main in self._ranks for pid in descendants(main)]
        readers = [pid for pid in below if pid in self._workers]
        return sorted(readers, key=self._workers.__getitem__)[:1] or below[:1]
