"""The sources in memory: torch data sets that apply a fault plan and record every read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from .. import identity
from ..articles import with_article
from ..errors import UserError
from ..faults import Read
from ..plan import FaultPlan
from ..trial.event_log import Kind, Recorder


class Reader:
    """Reads samples through a plan: records the read and applies the fault. Picklable.

    Args:
        folder: where attempts are counted across processes; None: within this process only.
    """

    def __init__(self, plan: FaultPlan, recorder: Recorder | None = None, folder: str | Path | None = None) -> None:
        self._plan = plan
        self._recorder = recorder
        self._folder = None if folder is None else str(folder)
        self._attempts: dict[int, int] = {}

    def read(self, sample: int, value: Callable[[], Any]) -> Any:
        """The sample as its fault leaves it; raises, blocks or dies if the fault does."""
        record = self._recorder
        if record is None:
            return self._struck(sample, value)
        record(Kind.READ, sample, threading.get_native_id(), int(threading.current_thread() is not threading.main_thread()))
        try:
            result = self._struck(sample, value)
        except BaseException as error:
            record(Kind.READ_DONE, sample, flags=1, aux=record.error(error))
            raise
        record(Kind.READ_DONE, sample)
        return result

    def _struck(self, sample: int, value: Callable[[], Any]) -> Any:
        fault = self._plan.get(sample)
        if fault is None:
            return value()
        return fault.strike(
            Read(
                sample=sample,
                value=value,
                took_hold=lambda: self._recorder(Kind.FAULT, sample) if self._recorder else None,
                attempt=lambda: self._attempt(sample),
            )
        )

    def _attempt(self, sample: int) -> int:
        if self._folder is None:
            self._attempts[sample] = self._attempts.get(sample, 0) + 1
            return self._attempts[sample] - 1
        # One byte for each read, in append mode: this count survives the death of the process that read.
        path = os.path.join(self._folder, f"attempts-{sample}")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b".")
            return os.lseek(descriptor, 0, os.SEEK_CUR) - 1  # not the file size, which may include another's byte
        finally:
            os.close(descriptor)


class Numbers(Dataset[dict[str, Any]]):
    """``samples`` samples ``{"id": int, "x": float32[8]}``, where ``x`` is computed from the id."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, sample: int) -> dict[str, Any]:
        if not 0 <= sample < self._samples:
            raise IndexError(f"sample {sample} of {self._samples}")
        return {"id": int(sample), "x": torch.from_numpy(identity.rows([sample])[0])}


class FaultyMap(Dataset[Any]):
    """A map-style data set that is read through a plan."""

    def __init__(self, dataset: Any, reader: Reader) -> None:
        self._dataset = dataset
        self._reader = reader

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, sample: int) -> Any:
        if not 0 <= sample < len(self._dataset):
            raise IndexError(f"sample {sample} of {len(self._dataset)}")
        return self._reader.read(int(sample), lambda: self._dataset[sample])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not set yet while unpickling: never recurse
            raise AttributeError(name)
        return getattr(self._dataset, name)


class _StreamIterator(Iterator[Any]):
    """Continues after an error: samples lost after it are lost by the loader, not by the source."""

    def __init__(self, samples: Iterator[int], reader: Reader, dataset: Numbers) -> None:
        self._samples = samples
        self._reader = reader
        self._dataset = dataset

    def __next__(self) -> Any:
        sample = next(self._samples)
        return self._reader.read(sample, lambda: self._dataset[sample])


class Stream(IterableDataset[Any]):
    """All samples in order, in each process that iterates: the loader or its factory must split it by rank and worker."""

    def __init__(self, samples: int, reader: Reader) -> None:
        self._dataset = Numbers(samples)
        self._reader = reader

    def __iter__(self) -> Iterator[Any]:
        return _StreamIterator(iter(range(len(self._dataset))), self._reader, self._dataset)


class ShardedStream(IterableDataset[Any]):
    """A stream that splits itself: this rank's and this worker's samples by stride."""

    def __init__(self, samples: int, reader: Reader, rank: int, world_size: int) -> None:
        self._dataset = Numbers(samples)
        self._reader = reader
        self._rank = rank
        self._world_size = world_size

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        share = range(self._rank * workers + worker, len(self._dataset), self._world_size * workers)
        return _StreamIterator(iter(share), self._reader, self._dataset)


class FaultyStream(IterableDataset[Any]):
    """A user's own iterable data set, read through a plan by position in each iterator."""

    def __init__(self, dataset: Any, reader: Reader) -> None:
        self._dataset = dataset
        self._reader = reader

    def __iter__(self) -> Iterator[Any]:
        return _PositionIterator(iter(self._dataset), self._reader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


class SizedFaultyStream(FaultyStream):
    """The same for a data set that has a length."""

    def __len__(self) -> int:
        return len(self._dataset)


class _PositionIterator(Iterator[Any]):
    def __init__(self, samples: Iterator[Any], reader: Reader) -> None:
        self._samples = samples
        self._reader = reader
        self._position = -1

    def __next__(self) -> Any:
        value = next(self._samples)
        self._position += 1
        return self._reader.read(self._position, lambda: value)


def faulty(dataset: Any, plan: FaultPlan | dict[int, Any]) -> Any:
    """Wrap any map-style or iterable data set so that it is read through a plan.

    Samples are counted by index in a map-style data set, by position in each iterator of an iterable one.

    Raises:
        UserError: the plan is not a plan, it has a fault for a sample that the data set does not have, or the data set
            can be neither indexed nor iterated.
    """
    if not isinstance(plan, Mapping):
        raise UserError(f"faulty() takes a plan like {{5: Hang()}}, not {with_article(type(plan).__name__)}")
    plan = plan if isinstance(plan, FaultPlan) else FaultPlan(plan)
    reader = Reader(plan)
    # torch gives every data set a __getitem__, also iterable ones, where it only raises.
    indexed = hasattr(dataset, "__getitem__") and not isinstance(dataset, IterableDataset)
    sized = hasattr(dataset, "__len__")
    if sized and (outside := [sample for sample in plan if sample >= len(dataset)]):
        raise UserError(f"the plan has a fault for sample {outside[0]}, but the data set has only {len(dataset)}")
    if indexed and sized:
        return FaultyMap(dataset, reader)
    if hasattr(dataset, "__iter__"):
        return (SizedFaultyStream if sized else FaultyStream)(dataset, reader)
    raise UserError(f"faulty() wraps data sets, and {with_article(type(dataset).__name__)} can be neither indexed nor iterated")
