"""A read that raises an exception which cannot be pickled."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


class UnpicklableError(Exception):
    """An error that carries a lock, as one that carries a connection or an open file does."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


@fault("unpicklable-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseUnpicklableError(Fault):
    """The read raises an exception that cannot be pickled, so that it cannot leave a worker as it is.

    It carries a lock, as errors do that keep the connection, the open file or the thread pool in which they arose.
    """

    def strike(self, read: Read) -> NoReturn:
        error = UnpicklableError(f"sample {read.sample} cannot be read")
        read.took_hold()
        raise error
