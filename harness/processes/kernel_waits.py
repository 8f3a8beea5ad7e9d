"""What a thread waits for in the kernel, as Linux shows it: the system call, the clock that would end it, and its descriptors."""

from __future__ import annotations

import math
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

UNKNOWN_S = -math.inf
"""Instead of a time: it may wake at any moment."""
_READ, _POLL, _SELECT, _EPOLL, _FUTEX, _CHILD, _SLEEP = "read", "poll", "select", "epoll", "futex", "child", "sleep"
_BY_NUMBER: dict[str, dict[int, tuple[str, str]]] = {
    "x86_64": {
        **dict.fromkeys((0, 1, 19, 20, 43, 44, 45, 46, 47, 288), (_READ, "")),  # read, write, readv, accept, send, recv, …
        7: (_POLL, "milliseconds"),
        23: (_SELECT, "timeval"),
        35: (_SLEEP, "relative"),
        61: (_CHILD, ""),
        202: (_FUTEX, ""),
        230: (_SLEEP, "clock"),
        232: (_EPOLL, "milliseconds"),
        247: (_CHILD, ""),
        270: (_SELECT, "timespec"),
        271: (_POLL, "timespec"),
        281: (_EPOLL, "milliseconds"),
        441: (_EPOLL, "timespec"),
    },
    "aarch64": {
        **dict.fromkeys((63, 64, 65, 66, 202, 206, 207, 211, 212, 242), (_READ, "")),
        22: (_EPOLL, "milliseconds"),
        72: (_SELECT, "timespec"),
        73: (_POLL, "timespec"),
        95: (_CHILD, ""),
        98: (_FUTEX, ""),
        101: (_SLEEP, "relative"),
        115: (_SLEEP, "clock"),
        260: (_CHILD, ""),
        441: (_EPOLL, "timespec"),
    },
}
"""Calls that wait: number, what kind of wait, and how its timeout is given. A wait in any other call proves nothing."""
_CALLS = _BY_NUMBER.get(os.uname().machine, {})
_TIMEOUT_AT = {_POLL: 2, _SELECT: 4, _EPOLL: 3}  # which argument
_FUTEX_PRIVATE, _FUTEX_REALTIME = 128, 256
_FUTEX_WAIT, _FUTEX_WAIT_BITSET = 0, 9
_ABSOLUTE = 1  # TIMER_ABSTIME
_MOST_DESCRIPTORS = 1024


@dataclass(frozen=True)
class Waiting:
    """One thread, blocked in one call, or in a process that was stopped."""

    pid: int
    thread: int
    stopped: bool
    """By a signal: it does nothing until another process continues it."""
    call: tuple[int, ...]
    """Number and arguments of the system call; empty for a stopped thread."""
    switches: str
    """How often it gave up its processor. If this did not change, the thread has not run in between."""


def waiting(pid: int, thread: str) -> Waiting | None:
    """What a thread waits for; None: it runs, or that cannot be read.

    Raises:
        FileNotFoundError: it has ended.
    """
    task = Path(f"/proc/{pid}/task/{thread}")
    status = dict(line.split(":\t", 1) for line in (task / "status").read_text(errors="replace").splitlines() if ":\t" in line)
    switches = status["voluntary_ctxt_switches"] + "/" + status["nonvoluntary_ctxt_switches"]
    state = status["State"][0]
    if state in "ZX":
        raise FileNotFoundError
    if state == "T":
        return Waiting(pid, int(thread), True, (), switches)
    try:
        fields = (task / "syscall").read_text().split()
    except PermissionError:
        return None
    if state != "S" or len(fields) != 9 or int(fields[7], 16) < 1 << 32:  # the stack of a 32-bit program: other numbers
        return None
    return Waiting(pid, int(thread), False, (int(fields[0]), *(int(field, 16) for field in fields[1:7])), switches)


class Memory:
    """The memory of a process, read from outside.

    Raises:
        OSError: it may not be read.
    """

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address.

        Raises:
            OSError: they are not there.
        """
        data = os.pread(self._file, size, address)
        if len(data) != size:
            raise OSError("the memory ends before")
        return data

    def seconds(self, address: int, unit: float = 1e-9) -> float:
        """A ``timespec`` (or a ``timeval``, with microseconds as its unit) in seconds."""
        whole, rest = struct.unpack("qq", self.read(address, 16))
        return float(whole + rest * unit)


def wakes_at(wait: Waiting, memory: Memory, began: float) -> float:
    """When a clock wakes the thread at the earliest, on the monotonic clock; infinity: none does.

    Args:
        began: a time before the call. A timeout that counts from the call ends this much after it at the earliest.

    Raises:
        OSError: its memory cannot be read.
    """
    if wait.stopped:
        return math.inf
    number, *arguments = wait.call
    kind, form = _CALLS.get(number, ("", ""))
    if kind in (_READ, _CHILD):
        return math.inf
    if kind == _FUTEX:
        return _futex(arguments, memory, began)
    if kind == _SLEEP:
        clock, flags, address = (1, 0, arguments[0]) if form == "relative" else arguments[:3]
        seconds = memory.seconds(address)
        return _absolute(seconds, realtime=clock == 0) if flags & _ABSOLUTE and clock in (0, 1) else began + seconds
    if not kind:
        return UNKNOWN_S
    given = arguments[_TIMEOUT_AT[kind]]
    if form == "milliseconds":
        (milliseconds,) = struct.unpack("i", struct.pack("I", given & 0xFFFFFFFF))
        return math.inf if milliseconds < 0 else began + milliseconds / 1000
    if not given:
        return math.inf
    return began + memory.seconds(given, 1e-6 if form == "timeval" else 1e-9)


def _futex(arguments: list[int], memory: Memory, began: float) -> float:
    operation = arguments[1] & ~(_FUTEX_PRIVATE | _FUTEX_REALTIME)
    if operation not in (_FUTEX_WAIT, _FUTEX_WAIT_BITSET):
        return UNKNOWN_S
    if not arguments[3]:
        return math.inf
    seconds = memory.seconds(arguments[3])
    if operation == _FUTEX_WAIT:
        return began + seconds
    return _absolute(seconds, realtime=bool(arguments[1] & _FUTEX_REALTIME))


def _absolute(seconds: float, *, realtime: bool) -> float:
    return seconds - time.time() + time.monotonic() if realtime else seconds


def shared_futex(wait: Waiting) -> int | None:
    """The address of a futex that other processes may share; None: it does not wait for one."""
    if wait.stopped or _CALLS.get(wait.call[0], ("",))[0] != _FUTEX or wait.call[2] & _FUTEX_PRIVATE:
        return None
    return wait.call[1]


def descriptors(wait: Waiting, memory: Memory) -> list[int]:
    """The descriptors that the thread waits for.

    Raises:
        OSError: they cannot be read.
    """
    if wait.stopped:
        return []
    number, *arguments = wait.call
    kind, _ = _CALLS.get(number, ("", ""))
    if kind == _READ:
        return [arguments[0]]
    if kind == _POLL:
        if arguments[1] > _MOST_DESCRIPTORS:
            raise OSError("too many descriptors")
        found = struct.iter_unpack("ihh", memory.read(arguments[0], 8 * arguments[1])) if arguments[1] else []
        return [descriptor for descriptor, _, _ in found if descriptor >= 0]
    if kind == _SELECT:
        return _chosen(arguments, memory)
    if kind == _EPOLL:
        info = Path(f"/proc/{wait.pid}/fdinfo/{arguments[0]}").read_text()
        return [int(line.split()[1]) for line in info.splitlines() if line.startswith("tfd:")]
    return []


def _chosen(arguments: list[int], memory: Memory) -> list[int]:
    """The members of the three sets of ``select``."""
    count = min(arguments[0], _MOST_DESCRIPTORS)
    words = -(-count // 64)
    members = 0
    for address in filter(None, arguments[1:4]):
        members |= int.from_bytes(memory.read(address, 8 * words), "little")
    return [descriptor for descriptor in range(count) if members >> descriptor & 1]
