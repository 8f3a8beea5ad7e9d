"""Records that could not be written to their end, since their file system is full or read-only."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Errors that say that nothing can be written there."""
_NAME = "torn-"


def note(folder: str | Path, error: OSError) -> None:
    """Note in a trial's folder that its record lacks something, if this error says that nothing can be written there.

    The note is the name of an empty file: a full file system has no space for content.
    """
    if error.errno in UNWRITABLE:
        with contextlib.suppress(OSError):
            os.close(os.open(os.path.join(folder, f"{_NAME}{error.errno}"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def noted(folder: Path) -> str:
    """Why the record in this folder lacks something, in the words of the system; empty: it does not."""
    for path in folder.glob(f"{_NAME}*"):
        number = path.name.removeprefix(_NAME)
        return os.strerror(int(number)) if number.isdigit() else number
    return ""
