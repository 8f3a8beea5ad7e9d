"""A read that never returns and blocks all Python code of its process."""

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

    This happens in native decoders that block or loop without releasing the lock. The fault locks a POSIX mutex twice
    in a C call that keeps the interpreter lock. Unlike ``pause``, ``sleep`` or ``read``, ``pthread_mutex_lock`` does
    not return when a signal arrives: the C library resumes the wait, so the interpreter never runs a handler. Handlers
    in C, like faulthandler's, do run. SIGKILL ends the process, as does any signal with its default action.
    """

    def strike(self, read: Read) -> NoReturn:
        libc = ctypes.PyDLL(None)  # PyDLL, unlike CDLL, keeps the interpreter lock during the call
        mutex = (ctypes.c_uint64 * _WORDS)()
        libc.pthread_mutex_init(mutex, None)
        libc.pthread_mutex_lock(mutex)
        read.took_hold()
        # The default kind of mutex deadlocks here on Linux and macOS. Elsewhere it may report EDEADLK.
        code = libc.pthread_mutex_lock(mutex)
        raise OSError(code, f"hang-holding-lock does not work on this platform: {os.strerror(code)}")
