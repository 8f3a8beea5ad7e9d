"""Proof that a trial will not end: every thread of every process waits for another one, and no clock wakes any of them in time.

The proof holds only where all of this can be read, on Linux. Any doubt (a call that is not known, a descriptor whose
other end may be outside the trial, a timer) means that nothing is proved, and the trial goes on. One thing cannot be
seen: an ``alarm`` whose default action kills its process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from .kernel_waits import Memory, Waiting, descriptors, shared_futex, waiting, wakes_at

CONFIRMED_AFTER_S = 1.0
"""The time after which the same threads must still wait in the same calls."""
_PIDFD_GETFD = 438  # the same number on every architecture
_ALARMS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ..(.)(.) \S+ (\S+) (\d+)\s*(.*)")


class Waits:
    """Follows the processes of one trial, from the process above them all.

    Args:
        find: the processes of the trial.
        folder: what has a name below it belongs to the trial.
        began: when the first of them was started, on the monotonic clock.
        deadline: when the trial is cut in any case; a clock that goes off later does not matter.
    """

    def __init__(self, find: Callable[[], list[int]], folder: Path, began: float, deadline: float) -> None:
        self._find = find
        self._folder = folder
        self._began = began
        self._deadline = deadline
        self._before: frozenset[Waiting] = frozenset()
        self._proved = False
        self._since = 0.0

    def endless(self) -> str:
        """Look at all threads; in words, what proves that the trial will not end, or nothing.

        It is proved twice: what waits now also waited :data:`CONFIRMED_AFTER_S` ago, and has not run in between.
        """
        if sys.platform != "linux":
            return ""
        now = self._all()
        if not now or now != self._all():  # read twice: between the two, all of them waited at the same time
            self._before = frozenset()
            return ""
        if now != self._before:
            self._before, self._since = now, time.monotonic()
            self._proved = self._nothing_wakes(now)
        if not self._proved or time.monotonic() - self._since < CONFIRMED_AFTER_S or not self._nothing_wakes(now):
            return ""
        return f"{_count(now)}, and no clock wakes any of them before the deadline"

    def _all(self) -> frozenset[Waiting]:
        """Every thread of the trial; empty where one of them runs, or cannot be read."""
        found: set[Waiting] = set()
        for pid in self._find():
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                return frozenset()
            for thread in threads:
                try:
                    wait = waiting(pid, thread)
                except (FileNotFoundError, ProcessLookupError):  # a zombie, or it has just ended
                    continue
                except (OSError, ValueError, KeyError):
                    return frozenset()
                if wait is None:
                    return frozenset()
                found.add(wait)
        return frozenset(found)

    def _nothing_wakes(self, waits: Iterable[Waiting]) -> bool:
        by_process: dict[int, list[Waiting]] = {}
        for wait in waits:
            by_process.setdefault(wait.pid, []).append(wait)
        pids = frozenset(by_process)
        try:
            return all(
                self._asleep(pid, [wait for wait in mine if not wait.stopped], pids) for pid, mine in by_process.items()
            )
        except (OSError, ValueError):  # it has ended, or may not be looked at
            return False

    def _asleep(self, pid: int, waits: list[Waiting], pids: frozenset[int]) -> bool:
        if not waits:
            return True
        if _may_be_alarmed(pid):
            return False
        with Memory(pid) as memory:
            for wait in waits:
                if wakes_at(wait, memory, self._began) < self._deadline:
                    return False
                address = shared_futex(wait)
                if address is not None and not self._is_own_memory(pid, address):
                    return False
                if not all(self._is_own(pid, descriptor, pids) for descriptor in descriptors(wait, memory)):
                    return False
        return True

    def _is_own(self, pid: int, descriptor: int, pids: frozenset[int]) -> bool:
        """Whether only processes of the trial can make a descriptor ready."""
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        if target.startswith("pipe:") or target == "anon_inode:[eventfd]":
            return target not in _inherited()
        if target.startswith("socket:"):
            return target not in _inherited() and self._is_own_socket(pid, descriptor, pids)
        if "pidfd" in target:
            info = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text()
            return any(line.startswith("Pid:") and int(line.split()[1]) in pids for line in info.splitlines())
        return _is_idle_device(f"/proc/{pid}/fd/{descriptor}")

    def _is_own_socket(self, pid: int, descriptor: int, pids: frozenset[int]) -> bool:
        """A Unix socket without timeouts, whose peer is in the trial; or one that listens below the trial's folder."""
        with contextlib.closing(socket.socket(fileno=_copied(pid, descriptor))) as copy:
            if copy.family != socket.AF_UNIX:
                return False
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                if any(copy.getsockopt(socket.SOL_SOCKET, option, 16)):
                    return False
            if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                name = copy.getsockname()
                return isinstance(name, str) and os.path.realpath(name).startswith(f"{os.path.realpath(self._folder)}/")
            peer = int.from_bytes(copy.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
            return peer in pids

    def _is_own_memory(self, pid: int, address: int) -> bool:
        """Whether no process outside the trial has the memory of a futex."""
        for begin, end, shared, file, name in _mappings(pid):
            if begin <= address < end:
                if not shared:
                    return True
                inherited = {other for _, _, _, other, _ in _mappings(os.getpid())}
                return name.endswith(" (deleted)") and file not in inherited
        return False


def _count(waits: Iterable[Waiting]) -> str:
    threads = list(waits)
    processes = len({wait.pid for wait in threads})
    return f"all {processes} processes wait for one another" if processes > 1 else "the process waits for itself"


def _may_be_alarmed(pid: int) -> bool:
    """Whether a process has timers, or handles a signal of one."""
    if Path(f"/proc/{pid}/timers").read_bytes():
        return True
    for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        if line.startswith("SigCgt:"):
            caught = int(line.split()[1], 16)
            return any(caught >> (signum - 1) & 1 for signum in _ALARMS)
    return True


def _inherited() -> frozenset[str]:
    """What this process, above the trial, has open: others outside may have it too."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return frozenset(found)


def _is_idle_device(path: str) -> bool:
    """Whether it is ``/dev/null``, which never becomes ready later than it is."""
    found = os.stat(path)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)


def _copied(pid: int, descriptor: int) -> int:
    """A descriptor of this process for what another one has open."""
    process = os.pidfd_open(pid)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        copy = int(libc.syscall(_PIDFD_GETFD, process, descriptor, 0))
    finally:
        os.close(process)
    if copy < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return copy


def _mappings(pid: int) -> Iterable[tuple[int, int, bool, tuple[str, str], str]]:
    """Begin, end, whether it is shared, device and inode, and name of each part of a process's memory."""
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        match = _MAPPING.match(line)
        if match:
            begin, end, _, shared, device, inode, name = match.groups()
            yield int(begin, 16), int(end, 16), shared == "s", (device, inode), name
