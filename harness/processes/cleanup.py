"""Removes what the dead processes of a trial left: only what demonstrably belongs to the trial."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import struct
from pathlib import Path

from .semaphores import semaphore_prefix
from .shared_memory import SHARED_MEMORY
from .temporary_folder import remove_temporary_folder

_NAMED_AFTER_A_PROCESS = re.compile(r"(?:torch|gloo|badbatch)_(\d+)_.*")  # torch's segment names contain pids
_PID_OF_RECORD = struct.Struct("<8x8x4xi8x")  # of event_log.RECORD; a test compares them
_HEADER_BYTES = 32  # of event_log.HEADER; a test compares them
_MOST_OF_A_RECORD = 1 << 28  # bytes: reading the pids of a larger record takes too long

Segments = frozenset[tuple[str, int]]
"""Names and inodes of segments of shared memory."""


def standing_segments() -> Segments:
    """The segments that exist now, so that those of a trial can be distinguished from them."""
    return frozenset((entry.name, entry.inode()) for entry in _entries())


def clear_away(folder: Path, pids: set[int], standing: Segments) -> list[dict[str, str]]:
    """Remove the temporary files of a trial that has ended, and the shared memory of its processes.

    A segment is removed if its name contains the pid of a process of the trial, it belongs to this user, and it was
    made after the trial began: a pid may be reused, and other pid namespaces may share the same shared memory.

    Args:
        folder: the trial's.
        pids: the processes, besides those in the record.
        standing: the segments that existed before the trial began.

    Returns:
        The segments, in the form of :attr:`~badbatch.harness.trial.history.Ended.leftovers`.
    """
    remove_temporary_folder(folder)
    for name in ("cache", "corpus", "corpus.made", "work"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in folder.glob("events-*.bin"):
        pids = pids | _recorded_pids(path)
    removed = []
    semaphores = f"sem.{semaphore_prefix(folder)}-"
    for entry in _entries():
        if (entry.name, entry.inode()) in standing or not _is_own_file(entry):
            continue
        if entry.name.startswith(semaphores):
            _remove(entry.path)
        elif (match := _NAMED_AFTER_A_PROCESS.fullmatch(entry.name)) and int(match.group(1)) in pids:
            removed.append({"what": "shared memory", "name": re.sub(r"\d+", "N", entry.name)})
            _remove(entry.path)
    return removed


def _entries() -> list[os.DirEntry[str]]:
    try:
        with os.scandir(SHARED_MEMORY) as entries:
            return list(entries)
    except OSError:  # no such folder here
        return []


def _is_own_file(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # it was removed meanwhile
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _recorded_pids(path: Path) -> set[int]:
    with path.open("rb") as file:
        file.seek(_HEADER_BYTES)
        data = file.read(_MOST_OF_A_RECORD + 1)
    if len(data) > _MOST_OF_A_RECORD:
        return set()
    whole = len(data) // _PID_OF_RECORD.size * _PID_OF_RECORD.size
    return {pid for (pid,) in _PID_OF_RECORD.iter_unpack(data[:whole])}
