"""A read that raises an exception which cannot be pickled."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


class UnpicklableError(Exception):
    """An error with a lock as attribute, like an error with a connection or an open file."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


@fault("unpicklable-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseUnpicklableError(Fault):
    """The read raises an exception that cannot be pickled, so that it cannot leave a worker unchanged.

    It has a lock as attribute, like errors that keep the connection, the open file or the thread pool in which they
    occurred.
    """

    def strike(self, read: Read) -> NoReturn:
        error = UnpicklableError(f"sample {read.sample} cannot be read")
        read.took_hold()
        raise error
