"""``stream``: all samples in order, in each process that iterates. The loader or its factory must split it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..in_memory import InMemory
from ..truth import Walk

if TYPE_CHECKING:
    from ..memory import Reader


def _dataset(samples: int, reader: Reader, rank: int, ranks: int) -> Any:
    from ..memory import Stream

    return Stream(samples, reader)


SOURCE = InMemory(
    "stream",
    "In memory: an iterable torch data set that gives all samples in order to each process that iterates it. "
    "The loader must split it by rank and by worker. Samples are those of map.",
    Walk.EVERY,
    _dataset,
)
