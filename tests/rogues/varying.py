"""A loader that answers the death of a worker in another way each time, as loaders with a race do."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

from badbatch.harness import Job, loader

from fixtures.loaders.processes import ProcessLoader


class Varying(ProcessLoader):
    """An honest loader, but for the deaths of its workers."""

    def __iter__(self) -> Iterator[Any]:
        return VaryingEpoch(super().__iter__())


class VaryingEpoch(Iterator[Any]):
    """Waits for ever, ends without an error, or drops the batch after the error, in turn: VARYING names the file that counts."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._over = False

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        try:
            return next(self._batches)
        except RuntimeError as error:
            turn = _turn()
            if turn == 0:
                threading.Event().wait()
            if turn == 1:
                self._over = True
                raise StopIteration from error
            next(self._batches, None)
            raise


def _turn() -> int:
    with open(os.environ["VARYING"], "ab", buffering=0) as count:
        count.write(b".")
        return count.tell() % 3


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",), workers=(0, 2), ranks=(1,))
def varying(job: Job) -> Varying:
    """Not the same check fails after each death."""
    return Varying(job, skip=False)
