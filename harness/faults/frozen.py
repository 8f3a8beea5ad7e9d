"""A read during which the process is stopped."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from .base import Effect, Fault, Read, fault


@fault("frozen", effect=Effect.STALL)
@dataclass(frozen=True)
class Frozen(Fault):
    """The reading process is stopped (SIGSTOP) with all its threads, as by a job scheduler or a debugger.

    It stops itself. The process stays alive and answers nothing; after SIGCONT the read returns the good sample.
    """

    def strike(self, read: Read) -> Any:
        read.took_hold()
        # Sent to this thread: with os.kill() another thread may receive the signal while this one continues for a
        # moment.
        signal.raise_signal(signal.SIGSTOP)
        return read.value()
