"""A read that raises an exception which cannot be built from its message alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


class TwoArgumentError(Exception):
    """An error whose constructor requires two arguments."""

    def __init__(self, sample: int, reason: str) -> None:
        super().__init__(f"sample {sample} {reason}")
        self.sample = sample
        self.reason = reason


@fault("two-argument-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseTwoArgumentError(Fault):
    """The read raises an exception whose constructor requires two arguments.

    Such an exception cannot be rebuilt from its message, nor by pickle's default, when it leaves a worker. Libraries
    define many, and Python has its own: ``subprocess.CalledProcessError`` (two), ``UnicodeDecodeError`` (five).
    """

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        raise TwoArgumentError(read.sample, "cannot be read")
