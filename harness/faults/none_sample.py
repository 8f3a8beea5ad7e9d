"""A read that returns None."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Effect, Fault, Read, fault


@fault("none-sample", effect=Effect.VALUE)
@dataclass(frozen=True)
class NoneSample(Fault):
    """The read returns ``None`` in place of the sample.

    This happens if a data set hides an error of its decoder and leaves the filtering to a collate function. An example
    is OpenCV's ``imread``, which returns ``None`` for a file that it cannot read.
    """

    def strike(self, read: Read) -> None:
        # Returning None is the harm.
        read.took_hold()
