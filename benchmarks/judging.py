"""How fast a record is judged: every check over a history of ten million events."""

from __future__ import annotations

import dataclasses
import functools
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults.raises import Raise
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.event_log import RECORD, Content, Kind, Where
from badbatch.harness.trial.history import Ended, History
from badbatch.harness.trial.spec import Topology, TrialSpec

from .measure import Figure, quickest

EVENTS = 10_000_000
_BATCH = 64
_WORKERS = 2
_ROUNDS = 3
_A_SAMPLE = 3  # events: its read begins, ends, and it arrives
_A_BATCH = 4  # asked, got, and twice how long the consumer's thread has waited for a processor


def figures() -> Iterator[Figure]:
    """A clean epoch, and one in which a hundred samples are damaged, each with its batch."""
    for name, faults in (("clean", 0), ("with 100 damaged samples", 100)):
        history = synthetic(EVENTS, faults)
        (took,) = quickest(functools.partial(_judged, history), rounds=_ROUNDS)
        events = len(history.events)
        yield Figure(
            f"events judged in a second, {name}",
            events / took / 1e6,
            "millions",
            10,
            True,
            f"{events:,} events in {took:.2f} s; {RECORD.itemsize} bytes an event on disk, and "
            f"{_memory(history) / events:.0f} more in memory while they were judged",
        )


def _memory(history: History) -> int:
    """The maximum memory that judging needs in addition to the record, in bytes."""
    tracemalloc.start()
    try:
        _judged(history)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _judged(history: History) -> None:
    anew = dataclasses.replace(history)  # without what an earlier judging has cached
    marks = {verdict.mark for verdict in judge(anew)}
    if marks - {Mark.PASS, Mark.NA}:
        raise AssertionError(f"the synthetic history keeps every promise, and was judged {marks}")


def synthetic(events: int, faults: int = 0) -> History:
    """The record of an honest loader with two workers that raises: about this many events, ``faults`` batches lost."""
    batches = events // (_BATCH * _A_SAMPLE + _A_BATCH)
    samples = batches * _BATCH
    damaged = np.arange(faults) * (batches // max(1, faults)) * _BATCH + 1
    spec = TrialSpec(
        loader="benchmarks:none",
        directory="/",
        scenario="one-bad" if faults else "clean",
        source="map",
        topology=Topology(_WORKERS, 1),
        plan=FaultPlan({int(sample): Raise() for sample in damaged}),
        contract=Contract(on_damage="raise", after_error="continue", tail="exact"),
        samples=samples,
        batch_size=_BATCH,
    )
    texts = {(1, 1): {"type": "builtins.OSError", "bases": ["builtins.OSError"], "message": "sample in worker process 0"}}
    return History(spec=spec, events=_events(batches, damaged), texts=texts, ended=Ended())


def _events(batches: int, damaged: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Batch by batch: the reads of its samples by its worker, then the answer to the consumer."""
    width = _BATCH * _A_SAMPLE + _A_BATCH
    grid = np.zeros((batches, width), RECORD)
    ids = np.arange(batches * _BATCH).reshape(batches, _BATCH)
    worker = (np.arange(batches) % _WORKERS)[:, None]
    reads = grid[:, : 2 * _BATCH].reshape(batches, _BATCH, 2)
    reads["kind"] = (Kind.READ, Kind.READ_DONE)
    reads["sample"] = ids[:, :, None]
    reads["pid"], reads["worker"], reads["epoch"] = worker[:, :, None] + 2, worker[:, :, None], -1
    asked, got, arrived = grid[:, 2 * _BATCH : 2 * _BATCH + 2], grid[:, 2 * _BATCH + 2 : width - _BATCH], grid[:, width - _BATCH :]
    asked["kind"], got["kind"], arrived["kind"] = (Kind.DELAY, Kind.ASK), (Kind.DELAY, Kind.GOT), Kind.ARRIVED
    got["sample"][:, 1] = _BATCH
    arrived["sample"], arrived["flags"] = ids, Content.WHOLE
    for part in (asked, got, arrived):
        part["pid"], part["worker"] = 1, -1
        part["aux"] = np.arange(batches)[:, None]
    keep = np.ones((batches, width), np.bool_)
    for sample in damaged:
        _damage(grid, keep, int(sample))
    flat = grid[keep]
    flat["time"] = np.arange(len(flat)) * 1000
    return np.concatenate([_edge(Kind.BUILDING, Kind.BUILT, Kind.EPOCH, time=0), flat, _end(len(flat) * 1000)])


def _damage(grid: np.ndarray[Any, Any], keep: np.ndarray[Any, Any], sample: int) -> None:
    """The read of a sample fails, the rest of its batch is not read, and an error arrives in place of the batch."""
    batch, place = divmod(sample, _BATCH)
    row = grid[batch]
    fault, done = 2 * place + 1, 2 * place + 2
    for at, kind, flags in ((fault, Kind.FAULT, 0), (done, Kind.READ_DONE, 1)):
        row[at]["kind"], row[at]["sample"], row[at]["flags"], row[at]["aux"] = kind, sample, flags, 1
        row[at]["pid"], row[at]["worker"] = row[0]["pid"], row[0]["worker"]
    keep[batch, done + 1 : 2 * _BATCH] = False
    keep[batch, 2 * _BATCH + _A_BATCH :] = False
    raised = row[2 * _BATCH + _A_BATCH - 1]
    raised["kind"], raised["flags"], raised["aux"], raised["sample"] = Kind.RAISED, Where.NEXT, 1, batch


def _edge(*kinds: Kind, time: int) -> np.ndarray[Any, Any]:
    edge = np.zeros(len(kinds), RECORD)
    edge["kind"], edge["pid"], edge["worker"], edge["time"] = kinds, 1, -1, time
    return edge


def _end(time: int) -> np.ndarray[Any, Any]:
    return _edge(Kind.DELAY, Kind.ASK, Kind.DELAY, Kind.END, Kind.EPOCH_DONE, Kind.CLOSING, Kind.CLOSED, Kind.FINISHED, time=time)
