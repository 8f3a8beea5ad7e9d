"""A ``/dev/shm`` of a trial's own, and which names a trial makes there (Linux only)."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import struct
import sys
import time
from dataclasses import dataclass

SHARED_MEMORY = "/dev/shm"
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_NO_SUID, _NO_DEVICES, _RECURSIVE, _PRIVATE = 1 << 1, 1 << 2, 1 << 14, 1 << 18
_CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_CREATED, _MOVED_HERE = 0x100, 0x80  # IN_CREATE, IN_MOVED_TO
_EVENT = struct.Struct("iIII")
_TRIED_WITHIN_S = 2.0
_MOST_NAMES = 200
_RANDOM = re.compile(r"(sem\.)?(bb[0-9a-f]{10}-.*|mp-\w{8}|psm_[0-9a-f]{8}|torch_\d+_\d+_\d+|gloo_.*)")
"""Names that another trial does not make, since they have random parts: of Python's multiprocessing, torch, gloo and badbatch."""
_TEMPORARY = re.compile(r"sem\.\w{6}")


@dataclass(frozen=True)
class Conditions:
    """How one trial is run; as JSON, the fields of a message to the zygote."""

    fresh: bool = False
    """In fresh interpreters, whatever the isolation is."""
    private: bool = False
    """With a ``/dev/shm`` of its own, where that is possible."""
    watched: bool = False
    """The names that appear in ``/dev/shm`` are recorded."""


def enter_private() -> bool:
    """Give this process, and those that it starts, a ``/dev/shm`` of their own; whether it could be done.

    The process must have one thread. What was mapped before stays mapped.
    """
    if sys.platform != "linux" or not os.path.isdir(SHARED_MEMORY):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    space = os.statvfs(SHARED_MEMORY)
    if libc.unshare(_NEW_MOUNTS) != 0:
        if libc.unshare(_NEW_MOUNTS | _NEW_USER) != 0:
            return False
        try:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        except OSError:
            return False
    size = space.f_blocks * space.f_frsize
    done = (
        libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) == 0
        and libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, f"mode=1777,size={size}".encode()) == 0
    )
    if user:  # in a new user namespace it has the rights of root over its own files: without permission, they must stay closed
        libc.capset((ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)())
    return bool(done)


def can_be_private() -> bool:
    """Whether a fork of this process can have a ``/dev/shm`` of its own. False where this process uses segments of the common one."""
    if mapped_segments():
        return False
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if enter_private() else 1)
        finally:
            os._exit(1)
    deadline = time.monotonic() + _TRIED_WITHIN_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)  # a library of the loader hangs in a fork
    os.waitpid(pid, 0)
    return False


def mapped_segments() -> set[str]:
    """Segments of shared memory that this process has mapped; those of other processes do not count."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            return {line.split(None, 5)[5].strip() for line in file if SHARED_MEMORY in line}
    except OSError:
        return set()


def may_be_temporary(name: str) -> bool:
    """Whether the C library may have given a semaphore this name while it made it; its parts are then random."""
    return _TEMPORARY.fullmatch(name) is not None


class Creations:
    """Records the names that appear in ``/dev/shm`` from now on, whichever process makes them."""

    def __init__(self) -> None:
        self._descriptor = -1
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._descriptor >= 0:
                libc.inotify_add_watch(self._descriptor, SHARED_MEMORY.encode(), _CREATED | _MOVED_HERE)

    def names(self) -> list[str]:
        """The names so far that have no random part, each once; ends the recording. At most 200, those that may be temporary last."""
        found: set[str] = set()
        try:
            while self._descriptor >= 0 and (data := os.read(self._descriptor, 1 << 16)):
                at = 0
                while at < len(data):
                    *_, length = _EVENT.unpack_from(data, at)
                    at += _EVENT.size
                    found.add(data[at : at + length].rstrip(b"\0").decode("utf-8", "replace"))
                    at += length
        except OSError:  # there are no more
            pass
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        names = sorted((name for name in found if name and not _RANDOM.fullmatch(name)), key=lambda name: (may_be_temporary(name), name))
        return names[:_MOST_NAMES]
