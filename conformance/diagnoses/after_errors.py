"""Diagnoses of what loaders do instead of an error, or after one: deliver something again, or retry without end."""

from __future__ import annotations

import re

import numpy as np

from ...harness.faults import Effect
from ...harness.trial.event_log import Kind
from ..checks.base import count, spans
from ..judging.raised import quoted
from .base import diagnosis
from .case import READS_WRONGLY, Case, Ids

_ENDLESS = 3  # deaths of processes in the same sample: one retry may be deliberate


def _batches(case: Case, rank: int) -> list[tuple[int, frozenset[int]]]:
    """The batches that arrived on a rank, in order: when, and which samples were in it."""
    arrived = case.arrived[case.arrived["rank"] == rank]
    got = case.history.of(Kind.GOT, epoch=case.epoch.number, rank=rank)
    return [
        (int(one["time"]), frozenset(int(sample) for sample in arrived["sample"][arrived["aux"] == one["aux"]])) for one in got
    ]


@diagnosis(
    "stale-batch-for-error",
    cause="In the place of an error the loader delivers a batch again that it had delivered before.",
    fix="Raise the error, and clear the buffer of the last batch before the next one is made.",
    explains=("no-duplicates", "no-lost-batches", "contract-kept", "exact-skip-count", "content-intact"),
    before=("substituted-silently", "error-dropped-with-its-batch", "drawn-with-replacement", "false-end"),
)
def stale_batch_for_error(case: Case) -> str | None:
    for fault in case.struck(*READS_WRONGLY):
        rank = int(fault["rank"])
        if not case.missing[fault["sample"]] or len(case.raised(rank)):
            continue
        seen: set[frozenset[int]] = set()
        for when, batch in _batches(case, rank):
            if len(batch) > 1 and batch in seen and when > int(fault["time"]):
                return f"after the fault of sample {fault['sample']} no error came, and the batch of samples {spans(batch)} came again"
            seen.add(batch)
    return None


@diagnosis(
    "started-again-after-error",
    cause="After an error the loader starts its epoch again from the beginning.",
    fix="Keep the position when an error is raised: the next call of next() must continue after the damaged batch.",
    explains=("no-duplicates", "finite-epoch", "contract-kept", "honest-length"),
    before=("position-stuck", "retry-without-end", "substituted-silently", "drawn-with-replacement", "not-split-by-worker"),
)
def started_again_after_error(case: Case) -> str | None:
    for rank in range(case.ranks):
        raised, batches = case.raised(rank), _batches(case, rank)
        if not len(raised) or not batches:
            continue
        error = raised[0]
        before = [batch for when, batch in batches if when < int(error["time"])]
        after = [batch for when, batch in batches if when > int(error["time"])]
        if before and len(before[0]) and after[: len(before)] == before:
            of_rank = f" on rank {rank}" if case.ranks > 1 else ""
            return (
                f"after {quoted(case.history, error)} the epoch began again{of_rank} with samples {spans(before[0])}: "
                f"{count(len(before), 'batch')} came a second time"
            )
    return None


@diagnosis(
    "dead-worker-started-again",
    cause="A worker that died is replaced by one that reads the same sample again, and dies too, without end.",
    fix="Report the sample that a worker was reading when it died, by an error or as a skip, and let the new worker continue after it.",
    explains=("finite-epoch", "crash-surfaces", "no-lost-batches", "contract-kept"),
    before=("waits-for-dead-worker", "batch-lost-with-the-news", "death-taken-for-end", "retry-without-end"),
)
def dead_worker_started_again(case: Case) -> str | None:
    deaths = case.struck(Effect.CRASH)
    for sample in np.unique(deaths["sample"]):
        mine = deaths[deaths["sample"] == sample]
        died = len(np.unique(mine["pid"]))
        raised = len(case.raised(int(mine[0]["rank"])))
        if died >= _ENDLESS * case.ranks and raised < died // 2:
            return f"{died} workers died in sample {sample}, one after the other, and {count(raised, 'error')} reached the consumer"
    return None


_COLLECTIVE = re.compile(r"torch/distributed/|\b(all_reduce|all_gather\w*|barrier|broadcast\w*|reduce_scatter\w*)\b")
"""A process that is in a collective operation, in the stacks of a trial."""
_LEFT_ALONE = re.compile(r"gloo|nccl|connection closed by peer|collective operation|process group", re.IGNORECASE)
"""The error of a collective operation in which another rank does not take part."""


@diagnosis(
    "rank-left-in-collective",
    cause="One rank raised an error, and another waits for it in a collective operation of the loader.",
    fix="Let each rank take part in the collective operation, whether its read failed or not, and agree on errors and on the end in it.",
    explains=("finite-epoch", "correct-timeout", "no-lost-batches", "contract-kept", "ranks-in-step"),
    before=("batch-lost-worker-alive", "error-swallowed-by-thread", "own-error", "retry-without-end", "false-end"),
)
def rank_left_in_collective(case: Case) -> str | None:
    in_collective = _COLLECTIVE.search(case.history.stacks) is not None
    for rank in range(case.ranks):
        raised = case.raised(rank)
        if not len(raised) or _LEFT_ALONE.search(case.history.text(raised[0])):
            continue
        first = f"rank {rank} got {quoted(case.history, raised[0])}"
        for other in range(case.ranks):
            later = case.raised(other)
            alone = [error for error in later if _LEFT_ALONE.search(case.history.text(error)) and error["time"] > raised[0]["time"]]
            if other != rank and alone:
                return f"{first}, and rank {other} was left alone in a collective operation in call {int(alone[0]['sample']) + 1} of next()"
            if other != rank and in_collective and case.waits_for_ever(other):
                return f"{first}, and rank {other} waits in a collective operation in call {case.epoch.calls[other]} of next()"
    return None


def _missing_without_fault(case: Case) -> Ids:
    """The samples that did not arrive in an epoch that ended on each rank, without an error or a fault; else none."""
    none: Ids = np.zeros(0, np.int64)
    if len(case.faults) or any(case.epoch.errors) or not case.epoch.whole or case.spec.shuffle:
        return none
    found: Ids = np.flatnonzero(case.epoch.arrivals == 0)
    return found


@diagnosis(
    "cut-to-the-ranks",
    cause="The set is cut to a multiple of the number of ranks, and what is left over is read by no rank.",
    fix="Pad the shares, as torch.utils.data.DistributedSampler does, or declare tail=\"drop\".",
    explains=("no-lost-batches", "fresh-epoch", "honest-length"),
    before=("last-batch-missing", "drop-last-per-worker", "rank-and-worker-composed-wrongly"),
)
def cut_to_the_ranks(case: Case) -> str | None:
    gone = _missing_without_fault(case)
    if case.ranks < 2 or case.spec.drop_last or len(gone) != case.spec.samples % case.ranks or not len(gone) or case.read[gone].any():
        return None
    return (
        f"{case.spec.samples} samples are {len(gone)} more than a multiple of {case.ranks} ranks, and no rank read "
        f"{count(len(gone), 'sample')} ({spans(gone)})"
    )


@diagnosis(
    "last-batch-missing",
    cause="The last batch of an epoch is never delivered.",
    fix="Deliver what is left when the source ends, also a partial batch unless drop_last is asked for, and only then raise StopIteration.",
    explains=("no-lost-batches", "honest-length"),
    before=("batch-lost-worker-alive", "drop-last-per-worker", "batched-per-worker", "length-in-samples"),
)
def last_batch_missing(case: Case) -> str | None:
    gone = _missing_without_fault(case)
    spec = case.spec
    if spec.drop_last or not 0 < len(gone) <= case.ranks * spec.batch_size or not len(case.arrived):
        return None
    sizes = case.history.of(Kind.GOT, epoch=case.epoch.number)["sample"]
    first = spec.samples - case.ranks * spec.batch_size
    if gone.min() < first or np.any(sizes != spec.batch_size):
        return None
    how = "though it was read" if case.read[gone].all() else "and it was not read" if not case.read[gone].any() else "and was read in part"
    return f"{count(len(sizes), 'batch')} came, and the last one never did ({count(len(gone), 'sample')}: {spans(gone)}), {how}"
