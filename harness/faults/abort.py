"""A read during which the process aborts itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

from . import core_dumps
from .base import Effect, Fault, Read, fault


@fault("abort", effect=Effect.CRASH)
@dataclass(frozen=True)
class Abort(Fault):
    """The reading process aborts (SIGABRT), as C++ libraries do on an uncaught exception or a failed assertion.

    It calls ``abort(3)``, so handlers of SIGABRT run as they would. No core file is written.
    """

    def strike(self, read: Read) -> NoReturn:
        core_dumps.switch_off()
        read.took_hold()
        os.abort()
