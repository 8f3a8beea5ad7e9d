"""A read during which the process dies of a segmentation fault."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import NoReturn

from . import core_dumps
from .base import Effect, Fault, Read, fault


@fault("segfault", effect=Effect.CRASH)
@dataclass(frozen=True)
class Segfault(Fault):
    """The reading process dies of a segmentation fault, as in native decoders that read malformed files.

    It really reads memory at address zero, so handlers of SIGSEGV run as they would. No core file is written.
    """

    def strike(self, read: Read) -> NoReturn:
        core_dumps.switch_off()
        read.took_hold()
        ctypes.string_at(0)
        raise OSError("this platform can read memory at address zero: segfault does not work here")
