"""A read that returns None."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Effect, Fault, Read, fault


@fault("none-sample", effect=Effect.VALUE)
@dataclass(frozen=True)
class NoneSample(Fault):
    """The read returns ``None`` in place of the sample.

    This happens if a data set hides an error of its decoder (OpenCV's ``imread`` returns ``None`` for a file that it
    cannot read) and leaves the filtering to a collate function.
    """

    def strike(self, read: Read) -> None:
        # Returning None is the harm.
        read.took_hold()
