"""Makes a file or a folder once, for several processes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def make_once(target: Path, make: Callable[[Path], Any]) -> Path:
    """Make ``target`` unless it exists. If several processes ask at the same time, one makes it and the others wait.

    Args:
        make: called with the path at which to make a file or a folder; it becomes ``target`` when the call returns. If
            the call raises or its process dies, what it made is removed.

    Returns:
        ``target``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    lock = os.open(target.with_name(f"{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel releases it when its owner dies
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
