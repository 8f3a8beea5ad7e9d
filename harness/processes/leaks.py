"""What a loader leaves behind: measured inside its process, against a snapshot taken before it was built."""

from __future__ import annotations

import collections
import os
import re
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..trial.event_log import Remains
from .process_tree import descendants, described
from .shared_memory import mapped_segments

_POLL_S = 0.02
_RECORD = re.compile(r"/(events-\d+\.bin|texts-\d+\.jsonl)$")  # a copy of the data set has a copy of the recorder
_HARMLESS_DIRECTORIES = ("pymp-",)  # multiprocessing's own folder, which exists until the interpreter ends


@dataclass(frozen=True)
class Snapshot:
    """What existed before the loader."""

    processes: frozenset[int]
    threads: frozenset[threading.Thread]
    descriptors: frozenset[int]
    shared_memory: frozenset[str]
    files: frozenset[str]


def snapshot(own_descriptors: set[int]) -> Snapshot:
    """What this process has now."""
    return Snapshot(
        processes=frozenset(descendants()),
        threads=frozenset(threading.enumerate()),
        descriptors=frozenset(_descriptors()) | frozenset(own_descriptors),
        shared_memory=frozenset(mapped_segments()),
        files=frozenset(_temporary_files()),
    )


Left = tuple[Remains, str]
"""What is left, and its name."""


def wait_for(
    before: Snapshot, own_descriptors: set[int], within_s: float, besides: Sequence[Left] = ()
) -> list[Left]:
    """What exists beyond ``before``; returns as soon as there is nothing, at the latest after ``within_s`` seconds.

    Args:
        besides: this many things like these may exist as well, whether the same or others in their place.
    """
    deadline = time.monotonic() + within_s
    while True:
        found = beyond(besides, _difference(before, own_descriptors))
        if not found or time.monotonic() >= deadline:
            return found
        time.sleep(_POLL_S)


def beyond(kept: Sequence[Left], found: Sequence[Left]) -> list[Left]:
    """What is found more often than in the baseline; things of one kind with similar names count as the same."""
    allowed = collections.Counter(_alike(left) for left in kept)
    more: list[Left] = []
    for left in found:
        if allowed[_alike(left)]:
            allowed[_alike(left)] -= 1
        else:
            more.append(left)
    return more


def _alike(left: Left) -> Left:
    """Files and segments have random names; numbers in other names count threads, descriptors and the like."""
    what, name = left
    return what, "" if what in (Remains.FILE, Remains.SHARED_MEMORY) else re.sub(r"\d+", "N", name)


def _difference(before: Snapshot, own_descriptors: set[int]) -> list[Left]:
    found: list[Left] = []
    standing_processes, standing_descriptors = _standard_library()
    for child in descendants():
        if child not in before.processes and child not in standing_processes:
            found.append((Remains.PROCESS, described(child)))
    for thread in threading.enumerate():
        if thread not in before.threads:
            found.append((Remains.THREAD, thread.name))
    for descriptor, target in _descriptors().items():
        if descriptor not in before.descriptors | own_descriptors | standing_descriptors:
            found.append((Remains.DESCRIPTOR, f"{descriptor} -> {target}"))
    found += [(Remains.SHARED_MEMORY, name) for name in sorted(mapped_segments() - before.shared_memory)]
    found += [(Remains.FILE, name) for name in sorted(_temporary_files() - before.files)]
    return found


def _standard_library() -> tuple[set[int], set[int]]:
    """Processes and descriptors of multiprocessing's resource tracker and fork server, which live as long as this process."""
    from multiprocessing import forkserver, resource_tracker

    tracker: Any = resource_tracker._resource_tracker
    server: Any = forkserver._forkserver
    processes = {getattr(tracker, "_pid", None), getattr(server, "_forkserver_pid", None)}
    descriptors = {getattr(tracker, "_fd", None), getattr(server, "_forkserver_alive_fd", None)}
    descriptors.add(getattr(server, "_forkserver_authkey_fd", None))
    return {p for p in processes if p is not None}, {d for d in descriptors if d is not None}


def _descriptors() -> dict[int, str]:
    found: dict[int, str] = {}
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:  # no /proc: descriptors cannot be distinguished here
        return found
    for name in names:
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the listing itself
            continue
        if not _RECORD.search(target):
            found[int(name)] = target
    return found


def _temporary_files() -> set[str]:
    found: set[str] = set()
    root = tempfile.gettempdir()
    for directory, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(_HARMLESS_DIRECTORIES)]
        found |= {os.path.relpath(os.path.join(directory, name), root) for name in [*folders, *files]}
    return found
