"""A read that raises IndexError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


@fault("index-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseIndexError(Fault):
    """The read raises ``IndexError``, which a loader can mistake for the end of the data set.

    This happens if an annotation points past the end of a list, or a row has fewer columns than its header. Python's
    own iteration by ``__getitem__`` treats this exception as the end.
    """

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        raise IndexError(f"sample {read.sample} cannot be read")
