"""Checks on which samples arrive, how often, and whether they are what was written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ...harness.contract.job import Contract
from ...harness.faults import Effect
from ...harness.sources.base import truth
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.accounting import readings
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger
from .base import Violation, check, count, from_an_error, spans, was, with_effects
from .disk import lacking


def _no_replacement(contract: Contract, spec: TrialSpec) -> str | None:
    return "the contract says replacement=True: samples may repeat" if contract.replacement else None


@check(
    "no-duplicates",
    title="No sample arrives twice in one epoch",
    why="A repeated sample counts twice in the gradient, and no loss curve shows it.",
    source="torch.utils.data documentation, IterableDataset: each worker has its own replica of the data set and must be "
    "configured to avoid duplicates",
    needs=_no_replacement,
    # Shares that overlap leave a gap: a sample that two of them contain takes the place of one that none contains.
    implies=(
        "finite-epoch", "no-lost-batches", "honest-length", "full-batches", "contract-kept", "exact-skip-count", "fresh-epoch",
        "declared-order",
    ),
)
def no_duplicates(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Over all workers and ranks, except repetitions that ``substitute`` and ``tail="pad"`` allow."""
    epoch = ledger.first
    for violation in twice(epoch, expected):
        yield dataclasses.replace(violation, follows_from=_smaller_set(epoch, expected))


def _smaller_set(epoch: Epoch, expected: Expectation) -> str:
    """The check broken by samples that never arrived, if the repetitions are the padding of the set without them.

    Only on disk, where a loader finds its samples by itself.
    """
    missing = (epoch.arrivals == 0) & (epoch.fate == Fate.LOST) & (expected.good | expected.odd)
    if not expected.truth.listed or expected.contract.tail != "pad" or not missing.any():
        return ""
    found = np.count_nonzero(epoch.arrivals) + epoch.nameless
    if int(epoch.extra.sum()) != -found % expected.spec.topology.ranks:
        return ""
    return "oddities-kept" if (missing & expected.odd).any() else "no-lost-batches"


def twice(epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    """The violation of an epoch in which samples arrive more often than is allowed."""
    if expected.contract.replacement:
        return
    extra = int(epoch.extra.sum())
    allowed = expected.pad_budget + expected.substitute_budget
    if extra <= allowed:
        return
    samples = epoch.having(Fate.DUPLICATED)
    most = int(epoch.arrivals.max())
    yield Violation(
        promised="each sample at most once" + (f", and {count(allowed, 'repetition')} besides" if allowed else ""),
        happened=f"{count(len(samples), 'sample')} arrived more than once, up to {most} times",
        duplicated=tuple(int(sample) for sample in samples),
    )


@check(
    "no-lost-batches",
    title="Every good sample arrives",
    why="A model trained on what is left learns from a biased, smaller set, and nothing says so.",
    source="the number of workers and ranks must not change which samples arrive; after an error the other batches still come",
    implies=("honest-length", "ranks-in-step", "contract-kept", "exact-skip-count", "full-batches"),
)
def no_lost_batches(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Except good samples of a batch that raised, and what ``drop_last`` and ``tail="drop"`` leave out.

    For draws, only the number counts.
    """
    epoch = ledger.first
    yield from drawn(history, epoch, expected)
    odd = np.flatnonzero(expected.odd)
    silent = expected.good | (expected.owed == Owed.EITHER)
    lost = [int(s) for s in epoch.having(Fate.LOST) if silent[s] and s not in odd]
    wrongly_skipped = [int(s) for s in epoch.having(Fate.SKIPPED) if expected.owed[s] == Owed.GOOD and s not in odd]
    unread = _unread(epoch, expected)
    if len(lost) > unread:
        contested = bool(expected.truth.contested[lost].any())
        what = count(len(lost), "sample" if contested else "good sample") + " that some decoder finds good" * contested
        yield Violation(
            promised=_promise(expected),
            happened=_not_arrived(what, len(lost), unread) + _after(history, expected),
            lost=tuple(lost),
            share=_share(history, lost),
            follows_from=from_an_error(epoch, expected),
        )
    if wrongly_skipped:
        yield Violation(
            promised="only damaged samples are skipped",
            happened=f"{count(len(wrongly_skipped), 'good sample')} {was(len(wrongly_skipped))} reported as skipped and never arrived",
            lost=tuple(wrongly_skipped),
            share=_share(history, wrongly_skipped),
        )


def drawn(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    """The violation of an epoch that delivers more or fewer samples than should be drawn with replacement."""
    if not expected.contract.replacement or not epoch.whole or (any(epoch.errors) and not expected.goes_on):
        return
    came = int(epoch.arrivals.sum()) + epoch.unnamed + epoch.nameless
    struck = len(readings(history, epoch.number, Kind.FAULT))
    spare = expected.drop_budget + sum(epoch.errors) * expected.spec.batch_size
    if expected.contract.on_damage == "skip":
        spare += max(struck, epoch.reported_total or 0)
    least, most = expected.spec.samples - spare, expected.spec.samples + expected.pad_budget
    if not least <= came <= most:
        yield Violation(
            f"an epoch delivers as many samples as the source has: {expected.spec.samples}",
            f"{count(came, 'sample')} came in epoch {epoch.number}",
        )


def _unread(epoch: Epoch, expected: Expectation) -> int:
    """Pictures that arrived from disk without a readable id: each may be any of the samples that did not arrive."""
    return int(np.count_nonzero(epoch.fabricated == -1)) if expected.truth.listed else 0


def _not_arrived(what: str, lost: int, unread: int) -> str:
    if not unread:
        return f"{what} never arrived"
    return (
        f"{what} did not arrive with a readable id; {count(unread, 'picture')} arrived without a readable id, so at least "
        f"{lost - unread} of the {lost} never arrived"
    )


def _promise(expected: Expectation) -> str:
    if not expected.spec.plan:
        return "every sample arrives"
    if expected.contract.on_damage == "raise" and expected.goes_on:
        return "after an error the epoch goes on"
    return "every good sample arrives"


def _after(history: History, expected: Expectation) -> str:
    """After which event: the fault that took effect, and in which process."""
    faults = history.of(Kind.FAULT)
    if not len(faults):
        return ""
    first = faults[0]
    fault = history.spec.plan.get(int(first["sample"]))
    where = f"worker {first['worker']}" if first["worker"] >= 0 else "the reading process"
    if history.spec.topology.ranks > 1:
        where += f" of rank {first['rank']}"
    more = f" (and {count(len(history.struck) - 1, 'more fault')})" if len(history.struck) > 1 else ""
    return f" after sample {first['sample']} had its fault ({fault.kind if fault else '?'}) in {where}{more}"


def _share(history: History, lost: list[int]) -> str:
    """The share of the lost samples, if one worker or one rank read all of them that were read."""
    reads = history.of(Kind.READ)
    if not len(reads) and not truth(history.spec).reads_recorded:
        return ""
    mine = reads[np.isin(reads["sample"], lost)]
    topology = history.spec.topology
    if not len(mine):
        return "never read by any process"
    unread = len(set(lost) - {int(s) for s in mine["sample"]})
    tail = f"; {unread} of them never read" if unread else ""
    owners = {(int(rank), int(worker)) for rank, worker in zip(mine["rank"], mine["worker"], strict=True)}
    if topology.workers and len(owners) == 1:
        rank, worker = owners.pop()
        if worker >= 0:
            return f"all in worker {worker}'s share" + (f" of rank {rank}" if topology.ranks > 1 else "") + tail
    ranks = {rank for rank, _ in owners}
    if topology.ranks > 1 and len(ranks) == 1:
        return f"all in rank {ranks.pop()}'s share" + tail
    return tail.removeprefix("; ")


@check(
    "content-intact",
    title="What arrives as good is that sample, whole",
    why="A half-grey picture or a label from the neighbouring row trains the model on something that never existed.",
    source="DESIGN of badbatch: what arrives as good must be the sample; an id proves nothing",
    implies=("contract-kept", "exact-skip-count"),
)
def content_intact(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Every field belongs to the same sample, and nothing arrives that the source never contained."""
    for epoch in ledger.epochs:
        # Where decoders disagree, the sample may arrive as any of them returned it.
        wrong = np.flatnonzero((epoch.wrong > 0) & ~expected.truth.contested & ~expected.optional)
        if len(wrong):
            damaged = [int(s) for s in wrong if expected.owed[s] != Owed.GOOD]
            what = f"{count(len(wrong), 'sample')} arrived with the wrong content"
            if damaged:
                what += f"; damaged and passed as good: {spans(damaged)}"
            yield Violation("a sample that arrives as good is as it was written", what, witnesses=_ids(wrong))
        as_good = np.flatnonzero((expected.damaged | expected.absent) & (epoch.arrivals > epoch.marked) & (epoch.wrong == 0))
        if expected.truth.separable:
            # The loader may not use the damaged part; then everything that it delivers of the sample is correct and
            # whole.
            as_good = as_good[expected.absent[as_good] | np.isin(as_good, lacking(history, epoch.number).samples)]
        if len(as_good):
            yield Violation(
                "a damaged sample does not arrive as good",
                f"{count(len(as_good), 'damaged sample')} arrived unmarked",
                witnesses=_ids(as_good),
            )
        unread = _unread(epoch, expected)
        if unread:
            missing = np.flatnonzero(expected.good & (epoch.arrivals == 0))
            which = f"; they may be any of the samples that did not arrive: {spans(missing)}" if len(missing) else ""
            yield Violation(
                "each picture is known by its id mark, or by the path or key beside it",
                f"{count(unread, 'picture')} arrived without a readable id{which}",
            )
        if len(epoch.fabricated) > unread:
            yield Violation(
                f"only samples of the source arrive (ids 0 to {history.spec.samples - 1})",
                f"{count(len(epoch.fabricated) - unread, 'sample')} arrived that the source never contained",
                witnesses=_ids(np.unique(epoch.fabricated[epoch.fabricated != -1] if unread else epoch.fabricated)),
            )
    yield from _unreadable(history)


def _ids(samples: np.ndarray) -> tuple[int, ...]:
    return tuple(int(sample) for sample in samples)


def _unreadable(history: History) -> Iterator[Violation]:
    events = history.of(Kind.UNREADABLE)
    if len(events):
        yield Violation(
            "every batch contains the ids of its samples",
            f"{count(len(events), 'batch')} could not be read: {history.text(events[0])}",
        )


@check(
    "oddities-kept",
    title="Legal but odd samples arrive",
    why="An empty annotation list and a NaN where the schema allows it are data: dropping them biases the set.",
    source="DESIGN of badbatch, valid oddities: a legal empty tensor is not a missing value",
    exercised=with_effects(Effect.LEGAL),
    implies=("contract-kept", "exact-skip-count", "full-batches"),
)
def oddities_kept(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """They arrive unmarked, and are not counted as skipped."""
    for epoch in ledger.epochs:
        gone = np.flatnonzero(expected.odd & np.isin(epoch.fate, (Fate.LOST, Fate.SKIPPED, Fate.MARKED)))
        lost = int(np.count_nonzero(epoch.fate[gone] == Fate.LOST))
        if lost <= _unread(epoch, expected):  # they may have arrived, as pictures without a readable id
            gone = gone[epoch.fate[gone] != Fate.LOST]
        if len(gone):
            fates = sorted({Fate(int(epoch.fate[s])).name.lower() for s in gone})
            unsure = np.flatnonzero(epoch.unsure)
            among = int(np.count_nonzero(epoch.unsure[gone]))
            which = (
                f"; {among} of them among {spans(unsure)}, of which {epoch.nameless} arrived without a path, a key or an id mark"
                if among
                else ""
            )
            yield Violation(
                "an odd but legal sample arrives like any other",
                f"{count(len(gone), 'odd sample')} did not: {' and '.join(fates)}{which}",
                lost=_ids(gone[~epoch.unsure[gone]]),
                witnesses=_ids(unsure) if among else (),
            )
        counted = np.flatnonzero(expected.odd & (epoch.reported > 0) & (epoch.arrivals > 0))
        if len(counted):
            yield Violation(
                "an odd but legal sample is not counted as skipped",
                f"{count(len(counted), 'sample')} arrived but were counted as skipped",
                witnesses=_ids(counted),
            )
