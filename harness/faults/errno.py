"""A read in which a system call fails."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from .base import Effect, Fault, Read, fault
from .parameters import check_parameters

Name = Literal["EIO", "ESTALE", "EACCES", "ENOSPC", "EMFILE", "ETIMEDOUT"]


@fault("errno", effect=Effect.ERROR)
@dataclass(frozen=True)
class Errno(Fault):
    """The read fails with an ``OSError`` of the system: a broken disk, a stale network file, a full disk, and the like.

    On Linux a real system call fails in this way, with any user's rights (ESTALE needs root). If no call can be made to
    fail, the same exception is created in Python.
    """

    name: Name = "EIO"
    """EIO (input/output error), ESTALE (stale file handle), EACCES (permission denied: a ``PermissionError``), ENOSPC (no
    space left), EMFILE (too many open files) or ETIMEDOUT (timed out: a ``TimeoutError``)."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> NoReturn:
        number: int = getattr(errno, self.name)
        read.took_hold()
        try:
            FAILING_CALLS[self.name]()
        except OSError as error:
            if error.errno == number:
                error.filename = f"sample {read.sample}"
                raise
        raise OSError(number, os.strerror(number), f"sample {read.sample}")


def _eio() -> None:
    # The first page of a process is never mapped.
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        os.pread(memory, 1, 0)
    finally:
        os.close(memory)


def _enospc() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        os.write(full, b"\0")
    finally:
        os.close(full)


def _eacces() -> None:
    # Root can read any file except a kernel setting that is write-only: for those the kernel checks only the mode bits.
    os.close(os.open("/proc/sys/vm/compact_memory", os.O_RDONLY))


def _emfile() -> None:
    # PyDLL keeps the interpreter lock, so no Python thread runs while this process cannot open files.
    libc = ctypes.PyDLL(None, use_errno=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        opened = libc.open(os.fsencode(os.devnull), os.O_RDONLY)
        number = ctypes.get_errno()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if opened == -1:
        raise OSError(number, os.strerror(number))
    os.close(opened)


class _Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def _etimedout() -> None:
    # A semaphore that nobody raises, and a deadline in the past: the call times out at once.
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "sem_timedwait"):  # macOS has none
        return
    semaphore = (ctypes.c_long * 8)()
    libc.sem_init(ctypes.byref(semaphore), 0, 0)
    waited = libc.sem_timedwait(ctypes.byref(semaphore), ctypes.byref(_Time(0, 0)))
    number = ctypes.get_errno()
    libc.sem_destroy(ctypes.byref(semaphore))
    if waited == -1:
        raise OSError(number, os.strerror(number))


class _FileHandle(ctypes.Structure):
    _fields_ = [("handle_bytes", ctypes.c_uint), ("handle_type", ctypes.c_int), ("f_handle", ctypes.c_ubyte * 8)]


def _estale() -> None:
    # No file of /proc can be opened by handle, so every handle is stale there, and no disk is read.
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "open_by_handle_at"):  # only Linux has it
        return
    mount = os.open("/proc", os.O_RDONLY)
    try:
        handle = _FileHandle(8, 1, (ctypes.c_ubyte * 8)(*[255] * 8))  # type 1: inode number and generation
        opened = libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDONLY)
        if opened == -1:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.close(opened)
    finally:
        os.close(mount)


FAILING_CALLS: dict[str, Callable[[], None]] = {
    "EIO": _eio,
    "ESTALE": _estale,
    "EACCES": _eacces,
    "ENOSPC": _enospc,
    "EMFILE": _emfile,
    "ETIMEDOUT": _etimedout,
}
"""Each function makes a real system call that fails with this error. If the platform has no such call, it returns or
raises another ``OSError``."""
