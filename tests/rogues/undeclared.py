"""Loaders of files that do not declare their sources, as they are first tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from badbatch.harness import Job, loader
from torch.utils.data import DataLoader, default_collate


def of_files(job: Job) -> list[Any]:
    """Lists the files when it is built."""
    return sorted(Path(job.root).iterdir())  # type: ignore[arg-type]


def lazily(job: Job) -> Iterator[Any]:
    """Lists them in the first call of next()."""
    yield sorted(job.root.iterdir())  # type: ignore[union-attr]


@loader(sources=("jsonl",))
def of_a_dataset(job: Job) -> list[Any]:
    """Declares files, and reads the data set that there is not."""
    return [job.dataset[0]]  # type: ignore[index]


class OfRoot:
    """Takes a folder, and is given a job."""

    def __init__(self, root: Any) -> None:
        self.files = sorted(Path(root).iterdir())


@loader(sources=("sharded_stream",))
def batched_per_worker(job: Job) -> Any:
    """torch's own way with a stream, which each worker puts into batches."""
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers, drop_last=job.drop_last)  # type: ignore[arg-type]


def read_when_built(job: Job) -> list[Any]:
    """Reads everything when it is built, and says nothing of it."""
    samples = [job.dataset[index] for index in range(job.samples)]  # type: ignore[index]
    return [default_collate(samples[at : at + job.batch_size]) for at in range(0, job.samples, job.batch_size)]


def never_built(job: Job) -> list[Any]:
    """Cannot be built on any data."""
    raise ValueError("no licence")
