"""A read during which the process is killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


@fault("killed", effect=Effect.CRASH)
@dataclass(frozen=True)
class Killed(Fault):
    """The reading process is killed (SIGKILL), as by the out-of-memory killer.

    It sends the signal to itself. No handler runs and nothing is flushed.
    """

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(
            "SIGKILL did not end this process: the first process of a container (process id 1) ignores its own"
        )
