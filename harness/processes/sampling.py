"""Samples the memory, the threads and the descriptors of a trial's processes into its event log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..trial.event_log import Kind, Recorder

_PAGE = os.sysconf("SC_PAGE_SIZE")


def sample(recorder: Recorder, pids: Iterable[int]) -> None:
    """Record what each process uses now. Processes that have ended, or cannot be looked at, are left out."""
    for pid in pids:
        own, threads, descriptors = _own_memory(pid), _entries(pid, "task"), _entries(pid, "fd")
        if own is not None and threads is not None:
            recorder(Kind.MEMORY, own, aux=threads, pid=pid)
        if descriptors is not None:
            recorder(Kind.DESCRIPTORS, descriptors, pid=pid)


def _own_memory(pid: int) -> int | None:
    """Bytes of resident memory that a process does not share with files or shared memory; None: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
        return (int(fields[1]) - int(fields[2])) * _PAGE or None  # a process that has ended and was not yet collected has none
    except (OSError, IndexError, ValueError):
        return None


def _entries(pid: int, name: str) -> int | None:
    """How many entries a folder of a process in ``/proc`` has; None: it cannot be read."""
    try:
        return len(os.listdir(f"/proc/{pid}/{name}"))
    except OSError:
        return None
