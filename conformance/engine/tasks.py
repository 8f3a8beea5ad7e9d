"""What a pool runs: tasks, and how they ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...harness.errors import UserError
from ...harness.processes.shared_memory import Conditions
from ...harness.trial import endings
from ...harness.trial.event_log import RECORD
from ...harness.trial.history import Ended, History
from ...harness.trial.spec import TrialSpec


@dataclasses.dataclass(eq=False)
class Task:
    """One trial to run."""

    begin: Callable[[], TrialSpec | None]
    """Called when there is a place for it. Returns the trial to run, or None if it is no longer needed."""
    waits: bool = False
    """It mostly waits, so that many of them may run at the same time."""
    alone: bool = False
    """Nothing else is started while it runs, and it is started when nothing else computes."""
    order: float = 0.0
    """Tasks of a lower order are started first; equal ones in the order in which they were submitted."""
    begins_s: float = 0.0
    """How long it computes at its start, in seconds."""
    spec: TrialSpec | None = None
    """The trial, after it was started."""
    gate: bool = False
    """Others wait for it: after a disturbance it is run again at once, and not alone."""
    disturbed: int = 0
    """How many runs were useless: the trial was lost, or the machine killed it."""
    watched: bool = False
    """It shows how the loader uses shared memory."""
    forked: Done | None = None
    """How it ended in a fork, if it is run in a fresh interpreter to find out whether the fork was at fault."""


class Done(NamedTuple):
    """A trial that has ended."""

    task: Task
    history: History
    folder: Path
    """Its record. The receiver keeps or removes it."""


class UnderWay(NamedTuple):
    """A trial that runs."""

    task: Task
    since: float
    conditions: Conditions
    separate: bool
    """Nothing that it makes in ``/dev/shm`` can meet what another trial makes."""


def record(task: Task, folder: Path) -> History:
    """The record of a trial. If the folder was removed and cannot be read, the record of a lost trial."""
    assert task.spec is not None
    try:
        return History.load(folder)
    except (UserError, OSError):
        lost = Ended(cut=endings.LOST, ranks=(None,) * task.spec.topology.ranks)
        return History(task.spec, np.empty(0, RECORD), {}, lost)
