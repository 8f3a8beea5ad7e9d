"""A loader whose trials something from outside ends, as often as a test says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from badbatch.harness import Job, loader

from fixtures.loaders.processes import ProcessLoader


def end_from_outside() -> None:
    """For each file in the folder, once: kill the process that its name says (``supervisor`` or ``rank``)."""
    for file in sorted(Path(os.environ["DISTURBED"]).iterdir()):
        try:
            file.unlink()
        except FileNotFoundError:  # another trial was quicker
            continue
        os.kill(os.getppid() if file.name.startswith("supervisor") else os.getpid(), signal.SIGKILL)
        signal.pause()


class Disturbed(ProcessLoader):
    """Works, unless its trial is ended from outside."""

    def __iter__(self) -> Iterator[Any]:
        end_from_outside()
        return super().__iter__()


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",), workers=(1,))
def disturbed(job: Job) -> Disturbed:
    """Works, unless its trial is ended from outside."""
    return Disturbed(job, skip=False)


class LostByWorkers(ProcessLoader):
    """Its trial is lost each time, where LOST says so of its number of workers; but for the clean one."""

    def __iter__(self) -> Iterator[Any]:
        if self._job.drop_last and (self._job.num_workers == 0) == (os.environ["LOST"] == "1"):
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
        return super().__iter__()


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",))
def lost_by_workers(job: Job) -> LostByWorkers:
    """Works with workers, or without, as LOST says."""
    return LostByWorkers(job, skip=False)
