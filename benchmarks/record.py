"""What the record costs a loader: each read and each arriving sample, compared with the same loop without a record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from badbatch.harness.plan import FaultPlan
from badbatch.harness.sources.memory import FaultyMap, Numbers, Reader
from badbatch.harness.trial.batch import BatchReader
from badbatch.harness.trial.event_log import Kind, Recorder
from torch.utils.data import DataLoader

from .measure import Figure, quickest

_SAMPLES = 40_000
_BATCH = 64
_ROUNDS = 5


def figures() -> Iterator[Figure]:
    """The record alone, then with the check of what arrives."""
    bare, recorded, checked = quickest(_bare, _recorded, lambda: _recorded(FaultPlan()), rounds=_ROUNDS)
    parts = f"bare loop {bare / _SAMPLES * 1e6:.1f} µs a sample, recorded {recorded / _SAMPLES * 1e6:.1f} µs"
    yield Figure("the record, over the bare loop", (recorded - bare) / _SAMPLES * 1e6, "µs a sample", 5, False, parts)
    yield Figure(
        "the record and the check of what arrives, over the bare loop",
        (checked - bare) / _SAMPLES * 1e6,
        "µs a sample",
        10,
        False,
        f"bare loop {bare / _SAMPLES * 1e6:.1f} µs a sample, recorded and checked {checked / _SAMPLES * 1e6:.1f} µs",
    )


def _loader(dataset: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=_BATCH)


def _bare() -> None:
    for _ in _loader(Numbers(_SAMPLES)):
        continue


def _recorded(plan: FaultPlan | None = None) -> None:
    """Read, ask, answer and arrival as the consumer of a trial records them; with a plan the batches are checked as well."""
    with tempfile.TemporaryDirectory() as folder:
        record = Recorder(folder)
        check = None if plan is None else BatchReader(plan)
        iterator = iter(_loader(FaultyMap(Numbers(_SAMPLES), Reader(FaultPlan(), record, folder))))
        for step in range(_SAMPLES // _BATCH):
            record(Kind.ASK, aux=step, epoch=0)
            batch = next(iterator)
            ids, flags = (batch["id"].numpy(), 4) if check is None else check.read(batch)
            record(Kind.GOT, len(ids), aux=step, epoch=0)
            record.many(Kind.ARRIVED, ids, step, flags, 0)
        record.close()
