"""The names of a trial's semaphores, by which they are found when all its processes are dead."""

from __future__ import annotations

import hashlib
import multiprocessing.process
from pathlib import Path


def semaphore_prefix(folder: Path) -> str:
    """What the names of the semaphores of the trial in ``folder`` begin with."""
    return f"bb{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()[:10]}"


def name_semaphores(folder: Path) -> None:
    """Have multiprocessing name the semaphores of this process, and of those that it starts, after its trial.

    With spawned workers a semaphore has a name until the resource tracker removes it; a tracker that is killed, or too
    slow on a loaded machine, leaves it for ever, under a random name that tells nobody whose it was.
    """
    config = getattr(multiprocessing.process.current_process(), "_config", None)
    if isinstance(config, dict) and "semprefix" in config:  # multiprocessing's own place for it, since Python 3.4
        config["semprefix"] = f"/{semaphore_prefix(folder)}"
