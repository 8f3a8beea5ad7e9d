"""Makes a file or a folder once, whoever asks first."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def make_once(target: Path, make: Callable[[Path], Any]) -> Path:
    """Have ``target`` made, unless it is there; of several processes that ask at the same time one makes it, the others wait.

    Args:
        make: called with the path at which to make a file or a folder; it becomes ``target`` when the call returns. What a
            call that raised, or whose process died, had made is removed.

    Returns:
        ``target``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    lock = os.open(target.with_name(f"{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel gives it back when its holder dies
        if not target.exists():
            _remove(partial)
            try:
                make(partial)
                partial.rename(target)
            finally:
                _remove(partial)
    finally:
        os.close(lock)
    return target


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
