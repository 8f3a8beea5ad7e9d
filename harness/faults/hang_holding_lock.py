"""A read that never returns and stops all Python code of its process with it."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault

_WORDS = 32  # 256 bytes: several times what a pthread_mutex_t takes (40 bytes on Linux, 64 on macOS)


@fault("hang-holding-lock", effect=Effect.STALL)
@dataclass(frozen=True)
class HangHoldingLock(Fault):
    """The read never returns and keeps the interpreter lock: no thread and no signal handler of its process can run.

    It is met in native decoders that block or loop without releasing the lock. It takes a POSIX mutex twice in a C
    call that keeps the lock. Unlike ``pause``, ``sleep`` or ``read``, ``pthread_mutex_lock`` does not return when a
    signal comes: the C library resumes the wait, so the interpreter never gets to run a handler. Handlers in C, as
    faulthandler's, do run; SIGKILL ends it, as does any signal that was left at its default.
    """

    def strike(self, read: Read) -> NoReturn:
        libc = ctypes.PyDLL(None)  # PyDLL, unlike CDLL, keeps the interpreter lock during the call
        mutex = (ctypes.c_uint64 * _WORDS)()
        libc.pthread_mutex_init(mutex, None)
        libc.pthread_mutex_lock(mutex)
        read.took_hold()
        # The default kind of mutex deadlocks here on Linux and macOS. Elsewhere it may report EDEADLK.
        code = libc.pthread_mutex_lock(mutex)
        raise OSError(code, f"hang-holding-lock cannot be carried out on this platform: {os.strerror(code)}")
