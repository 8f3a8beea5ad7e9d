"""A read that raises StopIteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


@fault("stop-iteration", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseStopIteration(Fault):
    """The read raises ``StopIteration``, which a loader can mistake for the end of the epoch.

    This happens if a data set calls ``next()`` on its own exhausted reader, such as a shard that lacks one sample. The
    exception is a plain ``raise StopIteration``.
    """

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        raise StopIteration
