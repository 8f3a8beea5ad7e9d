"""The names of a trial's semaphores, by which they are found after all its processes have died."""

from __future__ import annotations

import hashlib
import multiprocessing.process
from pathlib import Path


def semaphore_prefix(folder: Path) -> str:
    """The prefix of the names of the semaphores of the trial in ``folder``."""
    return f"bb{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()[:10]}"


def name_semaphores(folder: Path) -> None:
    """Make multiprocessing name the semaphores of this process, and of those that it starts, after its trial.

    With spawned workers a semaphore has a name until the resource tracker removes it. If the tracker is killed, or too
    slow on a loaded machine, the semaphore is never removed, and its random name does not show who made it.
    """
    config = getattr(multiprocessing.process.current_process(), "_config", None)
    if isinstance(config, dict) and "semprefix" in config:  # multiprocessing's own key for it, since Python 3.4
        config["semprefix"] = f"/{semaphore_prefix(folder)}"
