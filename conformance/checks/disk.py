"""Checks on what comes from disk: how much one fault costs, and whether a sample's fields belong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...harness.contract.job import Contract
from ...harness.sources.base import truth
from ...harness.sources.truth import Owed, Truth
from ...harness.trial.event_log import Content, Kind
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ...harness.trial.stored_batch import FIELDS
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger
from .base import Violation, check, count, spans, was

_WIDTH = {"sample": 0, "batch": 1, "row group": 2, "rest of the file": 2, "file": 2, "shard": 2}
"""How wide a loss is; the promises are among its keys."""


_CALLED = {"batch": "its batch", "row group": "its row group in {}", "rest of the file": "the rest of {}", "file": "its file {}"}


def _damaged_on_disk(spec: TrialSpec) -> bool:
    known = truth(spec)
    return bool(known.files) and bool(np.any(known.owed != Owed.GOOD))


def _goes_on(contract: Contract, spec: TrialSpec) -> str | None:
    if contract.on_damage == "raise" and contract.after_error == "stop":
        return "the loader promises to stop at the first error: nothing after it is owed"
    return None


@check(
    "loss-factor",
    title="One fault costs one sample, or no more than the contract says",
    why="A reader that gives up a shard for one bad row loses a thousand samples for one, and training goes on without an error.",
    source="badbatch's contract, blast_radius; undeclared it is the sample, and for a loader that raises its batch",
    exercised=_damaged_on_disk,
    needs=_goes_on,
    # A sample that was lost with a damaged one also breaks these checks.
    implies=("no-lost-batches", "contract-kept", "exact-skip-count", "full-batches", "ranks-in-step"),
)
def loss_factor(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Good samples that never arrived, if all of them are in the same batch, row group or file as a damaged one."""
    if not ledger.first.whole:
        return
    promised = expected.contract.blast_radius or ("batch" if expected.contract.on_damage == "raise" else "sample")
    for loss in losses(history, ledger.first, expected):
        if _WIDTH[loss.scope] > _WIDTH[promised]:
            yield Violation(
                f"a fault costs no more than its {promised}",
                f"{count(len(loss.samples), 'good sample')} {was(len(loss.samples))} lost with damaged sample {spans(loss.culprits)}: "
                f"{_CALLED[loss.scope].format(loss.path)}",
                lost=tuple(loss.samples),
                witnesses=tuple(loss.culprits[:5]),
            )


class Loss(NamedTuple):
    """Good samples that were lost with damaged ones."""

    scope: str
    """How wide it is: a key of the widths above."""
    path: str
    """The file; empty if each sample has its own."""
    samples: list[int]
    culprits: list[int]
    """The damaged samples next to them."""


def losses(history: History, epoch: Epoch, expected: Expectation) -> list[Loss]:
    """What was lost next to damaged samples; empty if some of it is not next to anything damaged."""
    known = expected.truth
    if not known.files:
        return []
    gone = np.isin(epoch.fate, (Fate.LOST, Fate.COLLATERAL, Fate.SKIPPED))
    lost = np.flatnonzero(expected.good & ~expected.odd & gone)
    damaged = np.flatnonzero(expected.owed != Owed.GOOD)
    if not len(lost) or not len(damaged):
        return []
    found = [
        Loss(scope, path, mine, [int(s) for s in damaged if path in ("", known.path_of(int(s)))])
        for scope, path, mine in _beside(history, known, lost, damaged)
    ]
    return found if sum(len(loss.samples) for loss in found) == len(lost) else []


def _beside(
    history: History, known: Truth, lost: npt.NDArray[np.int64], damaged: npt.NDArray[np.int64]
) -> Iterator[tuple[str, str, list[int]]]:
    """How wide each loss is, in which file, and the samples."""
    if len(known.files) == history.spec.samples:  # a file is a sample
        near = _read_together(history, damaged)
        mine = [int(sample) for sample in lost if int(sample) in near]
        if mine:
            yield "batch", "", mine
        return
    for path, first, size in known.files:
        bad = damaged[(damaged >= first) & (damaged < first + size)]
        mine = [int(sample) for sample in lost if first <= sample < first + size]
        if len(bad) and mine:
            yield _scope(history.spec, known, mine, bad), path, mine


def _scope(spec: TrialSpec, known: Truth, lost: list[int], bad: npt.NDArray[np.int64]) -> str:
    """The narrowest scope that contains all the losses of one file."""
    reach = spec.batch_size - 1
    if len(lost) <= reach * len(bad) and all(np.abs(bad - sample).min() <= reach for sample in lost):
        return "batch"
    groups = np.array(known.groups)
    if len(groups):
        group_of = np.searchsorted(groups, lost, side="right")
        if set(group_of) <= set(np.searchsorted(groups, bad, side="right")):
            return "row group"
    return "rest of the file" if min(lost) > bad.min() else "file"


def _read_together(history: History, damaged: npt.NDArray[np.int64]) -> set[int]:
    """The samples that a process read less than a batch's length before or after a damaged one."""
    reads = history.of(Kind.READ)
    reach = history.spec.batch_size - 1
    found: set[int] = set()
    for pid in np.unique(reads["pid"]):
        mine = reads["sample"][reads["pid"] == pid]
        for place in np.flatnonzero(np.isin(mine, damaged)):
            found.update(int(sample) for sample in mine[max(0, place - reach) : place + reach + 1])
    return found


@check(
    "fields-complete",
    title="A sample arrives with all its fields, and none of another's",
    why="Captions that are shifted by one row train the model on pairs that never existed, although no sample is lost.",
    source="the WebDataset convention (the members of one key are a sample) and the row of a table; each field of "
    "badbatch's samples shows the sample that it belongs to",
    exercised=lambda spec: truth(spec).separable,
    # A field of another sample is content that is not the sample's own.
    implies=("content-intact",),
)
def fields_complete(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Checks good samples; a field that no sample has is not required."""
    for epoch in ledger.epochs:
        arrived = history.of(Kind.ARRIVED, epoch=epoch.number)
        known = (arrived["sample"] >= 0) & (arrived["sample"] < history.spec.samples)
        mixed = np.unique(arrived["sample"][known & ((arrived["flags"] & Content.MIXED) != 0)])
        mixed = mixed[expected.owed[mixed] == Owed.GOOD]
        if len(mixed):
            yield Violation(
                "all fields of a sample are its own",
                f"{count(len(mixed), 'sample')} arrived with fields of another sample",
                witnesses=tuple(int(sample) for sample in mixed),
            )
        short = lacking(history, epoch.number, expected.owed == Owed.GOOD)
        if len(short.samples):
            yield Violation(
                "every sample arrives with the fields that the others have",
                f"{count(len(short.samples), 'sample')} arrived without {', '.join(short.fields)}",
                witnesses=tuple(int(sample) for sample in short.samples),
            )


class Lacking(NamedTuple):
    """Samples that arrived without fields that most arrive with."""

    samples: npt.NDArray[np.int64]
    fields: tuple[str, ...]


def lacking(history: History, epoch: int, among: npt.NDArray[np.bool_] | None = None) -> Lacking:
    """Those of an epoch, among all samples or those of a mask."""
    events = history.of(Kind.FIELDS, epoch=epoch)
    events = events[(events["sample"] >= 0) & (events["sample"] < history.spec.samples)]
    if among is not None:
        events = events[among[events["sample"]]]
    if not len(events):
        return Lacking(np.zeros(0, np.int64), ())
    bits = (events["aux"][:, None] >> np.arange(len(FIELDS))) & 1
    missing = (bits.mean(axis=0) > 0.5) & (bits == 0)
    names = tuple(name for name, any_lacks in zip(FIELDS, missing.any(axis=0)) if any_lacks)
    return Lacking(np.unique(events["sample"][missing.any(axis=1)]).astype(np.int64), names)
