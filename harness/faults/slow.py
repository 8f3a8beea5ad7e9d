"""A read that returns late."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

from .base import Effect, Fault, Read, fault
from .parameters import Within, check_parameters


@fault("slow", effect=Effect.SLOW)
@dataclass(frozen=True)
class Slow(Fault):
    """The read returns the good sample, but late, like a cold cache or a busy network file system.

    It sleeps, with the interpreter lock released.
    """

    seconds: Annotated[float, Within(0, 86_400)] = 0.4

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        read.took_hold()
        time.sleep(self.seconds)
        return read.value()
