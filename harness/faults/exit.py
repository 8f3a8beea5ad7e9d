"""A read during which the process exits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, NoReturn

from .base import Effect, Fault, Read, fault
from .parameters import Within, check_parameters


@fault("exit", effect=Effect.CRASH)
@dataclass(frozen=True)
class Exit(Fault):
    """The reading process exits at once, without cleaning up; with code 0 nothing looks wrong from outside.

    It calls ``os._exit``, like native libraries that call ``exit`` on an error.
    """

    code: Annotated[int, Within(0, 255)] = 1
    """Exit code of the process."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        os._exit(self.code)
