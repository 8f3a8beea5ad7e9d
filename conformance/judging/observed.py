"""Facts that a trial shows about a loader, before any judgement: what followed a fault, how soon, and how skips were reported."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...harness.plain import Plain
from ...harness.trial.event_log import Kind, Remains, Where
from ...harness.trial.history import History
from .expectation import Expectation
from .ledger import Epoch, Fate, Ledger

_MOST_REASONS = 8
_LETTERS = 200  # of a reason
_REACHES = (Where.NEXT, Where.ITER, Where.OUTSIDE, Where.FACTORY)

AFTER = ("waits", "repeats", "ends", "goes on")
"""What the loader does after the first error, the worst first: it never returns; it raises the same error again and
again; it delivers no further batch; it delivers further batches."""


@dataclasses.dataclass(frozen=True)
class Observed(Plain):
    """Facts about one trial. The default: nothing was observed, as in reports of badbatch 0.1.0."""

    effect: str = ""
    """What the plan's faults do to a read: a value of :class:`~badbatch.harness.faults.Effect`; empty: there is no
    fault, or there are several effects."""
    struck: int = 0
    """Samples whose fault took effect."""
    errors: int = 0
    """Errors that reached the consumers, over all epochs."""
    after: str = ""
    """One of :data:`AFTER`; empty: no error came."""
    surfaced_s: float | None = None
    """Seconds from the first fault to the first error or reported skip on its rank; None: neither was seen, or no fault
    was."""
    silent: int = 0
    """Damaged samples of the first epoch that did not arrive, and that no error and no report accounts for."""
    reasons: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """From the reasons that the loader gave for skips to their number; the most frequent first."""
    without_reason: int = 0
    """Skips with an empty reason."""
    worker_tails: int = 0
    """Where the contract says that each worker puts its own samples into batches: the most short batches that came on one rank
    before its last one."""
    left_out: int = 0
    """There, with ``drop_last``: good samples of the first epoch that were left out with the partial batches."""
    kept: tuple[str, ...] = ()
    """What the loader's process keeps until it exits, only once however many loaders are built: kinds and names."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What each registered observation (:mod:`badbatch.conformance.report.observations`) keeps of the trial, by its name."""


def observe(history: History, ledger: Ledger, expected: Expectation) -> Observed:
    """The facts on a trial."""
    effects = {fault.effect.value for fault in history.spec.plan.values()}
    raised = history.of(Kind.RAISED)
    raised = raised[np.isin(raised["flags"], _REACHES)]
    reasons, empty = _reasons(history)
    return Observed(
        effect=effects.pop() if len(effects) == 1 else "",
        struck=len(history.struck),
        errors=len(raised),
        after=_after(history, raised, ledger, expected),
        surfaced_s=_surfaced(history, raised),
        silent=_silent(ledger, expected),
        reasons=reasons,
        without_reason=empty,
        worker_tails=_worker_tails(history, expected),
        left_out=int(np.count_nonzero(expected.good & (ledger.first.fate == Fate.DROPPED)))
        if expected.per_worker and history.spec.drop_last
        else 0,
        kept=tuple(sorted({f"{_KINDS[Remains(int(e['flags']))]} {history.text(e)}" for e in history.of(Kind.KEPT)})),
    )


_KINDS = {
    Remains.PROCESS: "process",
    Remains.THREAD: "thread",
    Remains.SHARED_MEMORY: "shared memory",
    Remains.DESCRIPTOR: "descriptor",
    Remains.FILE: "temporary file",
}


def _after(history: History, raised: Any, ledger: Ledger, expected: Expectation) -> str:
    """The worst that happened after the first error of a rank, in the epoch of that error.

    An epoch whose last batch ended in an error also counts as continued, as long as nothing that should follow is
    missing.
    """
    found = []
    for rank in sorted({int(rank) for rank in raised["rank"]}):
        first = raised[raised["rank"] == rank][0]
        later = history.of(Kind.GOT, Kind.RAISED, Kind.END, Kind.CAPPED, Kind.ASK, epoch=history.logical(first), rank=rank)
        later = later[later["time"] > first["time"]]
        kinds = set(later["kind"].tolist())
        if Kind.GOT in kinds:
            found.append("goes on")
        elif Kind.CAPPED in kinds:
            found.append("repeats")
        elif len(later) and later[-1]["kind"] == Kind.ASK and history.ended.cut is not None:
            found.append("waits")
        elif (number := history.logical(first)) is not None and not _owes(ledger.epochs[number], expected):
            found.append("goes on")
        else:
            found.append("ends")
    return min(found, key=AFTER.index) if found else ""


def _owes(epoch: Epoch, expected: Expectation) -> bool:
    """Whether good samples are missing that were not lost with a damaged neighbour."""
    return bool(np.any(expected.good & np.isin(epoch.fate, (Fate.LOST, Fate.UNDELIVERED, Fate.IN_DOUBT))))


def _surfaced(history: History, raised: Any) -> float | None:
    faults = history.of(Kind.FAULT)
    skips = history.of(Kind.SKIPPED)
    waits = []
    for rank in sorted({int(rank) for rank in faults["rank"]}):
        moment = int(faults[faults["rank"] == rank]["time"].min())
        times = [*raised[raised["rank"] == rank]["time"].tolist(), *skips[skips["rank"] == rank]["time"].tolist()]
        later = [time for time in times if time >= moment]
        if later:
            waits.append((min(later) - moment) / 1e9)
    return round(max(waits), 3) if waits else None


def _worker_tails(history: History, expected: Expectation) -> int:
    if not expected.per_worker or history.spec.plan:  # a skip shortens batches as well
        return 0
    most = 0
    for epoch in range(history.spec.epochs):
        for rank in range(history.spec.topology.ranks):
            sizes = history.of(Kind.GOT, epoch=epoch, rank=rank)["sample"][:-1]
            most = max(most, int(np.count_nonzero(sizes < history.spec.batch_size)))
    return most


def _silent(ledger: Ledger, expected: Expectation) -> int:
    epoch = ledger.first
    return int(np.count_nonzero(expected.damaged & (epoch.fate == Fate.LOST))) if epoch.whole else 0


def _reasons(history: History) -> tuple[dict[str, int], int]:
    counted: collections.Counter[str] = collections.Counter()
    empty = 0
    for kind in (Kind.SKIPPED, Kind.REASON):
        for event in history.of(kind):
            times = int(event["sample"]) if kind is Kind.REASON else 1
            name, text = history.text(event, "type").rpartition(".")[2], " ".join(history.text(event).split())
            if name == "NoneType" or (name == "str" and not text):
                empty += times
            else:
                counted[(text if name == "str" else f"{name}: {text}" if text else name)[:_LETTERS]] += times
    return dict(counted.most_common(_MOST_REASONS)), empty
