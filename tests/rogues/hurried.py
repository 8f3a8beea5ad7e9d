"""A loader that is too late the first few times that it is given a timeout, as on a machine that others keep busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from badbatch.harness import Job, loader

from fixtures.loaders.processes import ProcessLoader


class Late(ProcessLoader):
    """Ends in a timeout before its first batch, as often as there are excuses left."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, skip=False)
        self._timed = bool(job.timeout)

    def __iter__(self) -> Iterator[Any]:
        if self._timed:
            for excuse in Path(os.environ["HURRIED_EXCUSES"]).iterdir():
                excuse.unlink()
                raise TimeoutError("the first batch did not come in time")
        return super().__iter__()


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",), workers=(1,))
def late(job: Job) -> Late:
    """Too late now and then."""
    return Late(job)
