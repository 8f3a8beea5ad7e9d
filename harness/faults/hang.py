"""A read that never returns."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from typing import Annotated, Any

from .base import Effect, Fault, Read, fault
from .parameters import Within, check_parameters


@fault("hang", effect=Effect.STALL)
@dataclass(frozen=True)
class Hang(Fault):
    """The read never returns, like a stalled network file system; other threads of the process continue.

    It blocks in ``select(2)`` on a pipe without a writer, so the interpreter lock is released.
    """

    release_after_s: Annotated[float, Within(0, 86_400)] | None = None
    """Seconds until the read returns the good sample after all; None: never."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def may_recover(self) -> bool:
        return self.release_after_s is not None

    def strike(self, read: Read) -> Any:
        reader, writer = os.pipe()
        try:
            read.took_hold()
            select.select([reader], [], [], self.release_after_s)
        finally:
            os.close(reader)
            os.close(writer)
        return read.value()
