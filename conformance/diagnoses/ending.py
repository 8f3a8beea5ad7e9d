"""Diagnoses of epochs that do not end, of timeouts, and of what outlives an epoch."""

from __future__ import annotations

import re

import numpy as np

from ...harness.faults import Effect
from ...harness.trial import endings
from ...harness.trial.event_log import Kind, Remains
from ..checks.base import count
from ..judging.ledger import Stop
from .base import diagnosis
from .case import READS_WRONGLY, Case

_AGAIN = 3  # the same error this often in a row is not a coincidence
_RETRIES = 10  # reads of one sample: nobody retries this often without a pause on purpose
_LITTLE = 0.1  # of the timeout: milliseconds read as seconds, plus the time to start a worker
_UNITS = {60.0: "minutes", 1000.0: "milliseconds the other way round"}
_NEAR = 0.15

_ENDINGS = ("finite-epoch", "contract-kept", "no-lost-batches", "correct-timeout", "exact-skip-count")


def _repeated(case: Case, rank: int) -> tuple[int, str]:
    """How often the last error occurred in a row, without a batch after its first, and its message."""
    raised = case.raised(rank)
    got = case.history.of(Kind.GOT, epoch=case.epoch.number, rank=rank)["time"]
    last_batch = int(got[-1]) if len(got) else -1
    said = [case.history.text(event) for event in raised[raised["time"] > last_batch]]
    times = 0
    while times < len(said) and said[-1 - times] == said[-1]:
        times += 1
    return times, said[-1].strip().splitlines()[-1][:80] if said and said[-1].strip() else ""


@diagnosis(
    "position-stuck",
    cause="The position does not move past an error, so that each call fails at the same sample again.",
    fix="Move the position on before the sample is read, or in a finally.",
    explains=_ENDINGS,
    before=("retry-without-end", "worker-left-at-first-error"),
)
def position_stuck(case: Case) -> str | None:
    for fault in case.struck(*READS_WRONGLY):
        times, said = _repeated(case, int(fault["rank"]))
        read = int(np.count_nonzero(case.reads["sample"] == fault["sample"]))
        if times < _AGAIN:
            continue
        how = f"sample {fault['sample']} was read {read} times" if read > 1 else "nothing was read between them"
        return f"the same error came {times} times in a row ({said}), and {how}"
    return None


@diagnosis(
    "timeout-without-end",
    cause="After a timeout the loader waits for the same worker again, in every call, while it hangs.",
    fix="After a timeout end the worker that hangs, drop its batches or give them to another worker, then go on or stop for good.",
    explains=_ENDINGS,
    before=("close-waits-for-hung-worker", "batch-lost-worker-alive"),
)
def timeout_without_end(case: Case) -> str | None:
    for fault in case.struck(Effect.STALL, Effect.SLOW):
        times, said = _repeated(case, int(fault["rank"]))
        unfinished = not np.any(case.done["sample"] == fault["sample"])
        if times >= _AGAIN and unfinished:
            return f"the same error came {times} times ({said}), while {case.reader(fault)} hung in sample {fault['sample']}"
    return None


@diagnosis(
    "retry-without-end",
    cause="The loader retries inside, without a limit: the consumer waits while the same samples are read again and again.",
    fix="Limit the retries (job.max_consecutive_skips says how many skips in a row), then raise.",
    explains=(*_ENDINGS, "honest-length"),
    before=("error-swallowed-by-thread",),
)
def retry_without_end(case: Case) -> str | None:
    if not len(case.reads):
        return None
    times = np.bincount(case.reads["sample"])
    most = int(times.argmax())
    raised = len(case.raised())
    if times[most] < _RETRIES or raised >= times[most] // 2 or times[most] <= 2 * case.workers * case.ranks:
        return None
    if len(case.faults) and not np.any(case.faults["sample"] == most):
        return None  # a good sample that represents many damaged ones
    return f"sample {most} was read {times[most]} times in one epoch, and {count(raised, 'error')} followed"


def _first_error_after(case: Case, rank: int, moment: int) -> float | None:
    for seconds, answer in case.waits(rank):
        if answer["kind"] == Kind.RAISED and int(answer["time"]) >= moment:
            return seconds
    return None


@diagnosis(
    "timeout-wrong-units",
    cause="The timeout is read in a unit other than seconds.",
    fix="job.timeout is in seconds: convert it where a queue or a poll wants milliseconds.",
    explains=("correct-timeout", "finite-epoch", "contract-kept"),
    before=("timeout-without-end", "batch-lost-worker-alive"),
)
def timeout_wrong_units(case: Case) -> str | None:
    timeout = case.spec.timeout_s
    if not timeout or np.any(case.done["flags"] == 1) or len(case.struck(Effect.CRASH)):
        return None
    for rank in range(case.ranks):
        seconds = _first_error_after(case, rank, 0)
        if seconds is None:
            continue
        if seconds <= _LITTLE * timeout:
            return f"with a timeout of {timeout:g} s the first error came after {seconds:.3f} s, as if it were in milliseconds"
        for factor, unit in _UNITS.items():
            if abs(seconds / timeout / factor - 1) < _NEAR:
                return f"with a timeout of {timeout:g} s the first error came after {seconds:.1f} s, as if it were {unit}"
    return None


_RECEIVES = re.compile(r"\(most recent call first\):\n.*multiprocessing/connection\.py.* in _recv\n(?:  File .*\n)*?.* in __next__\n")
"""A thread in ``next()`` that has the beginning of a message and waits for the rest."""


@diagnosis(
    "timeout-ends-at-first-byte",
    cause="The timeout covers the wait for a message but not its reception, and the sender stopped in the middle of a message.",
    fix="Send batches from a process that does not read samples, or receive them in a thread of their own.",
    explains=("correct-timeout", "finite-epoch"),
    before=("timeout-not-passed-on",),
)
def timeout_ends_at_first_byte(case: Case) -> str | None:
    if not _RECEIVES.search(case.history.stacks):
        return None
    for fault in case.struck(Effect.STALL):
        if case.spec.timeout_s and case.waits_for_ever(int(fault["rank"])):
            return (
                f"{case.reader(fault)} hung in sample {fault['sample']} with an earlier batch half sent, and the consumer waits for "
                "the rest of it"
            )
    return None


@diagnosis(
    "timeout-not-passed-on",
    cause="The timeout is not passed on to the call that waits.",
    fix="Pass job.timeout to the call that waits for the worker, and raise when it is over.",
    explains=("correct-timeout", "finite-epoch"),
    before=("batch-lost-worker-alive",),
)
def timeout_not_passed_on(case: Case) -> str | None:
    timeout = case.spec.timeout_s
    for fault in case.struck(Effect.STALL):
        rank = int(fault["rank"])
        if timeout and case.waits_for_ever(rank) and not len(case.raised(rank)):
            asked = case.history.of(Kind.ASK, epoch=case.epoch.number, rank=rank)
            if not len(asked):
                continue
            began = int(asked[-1]["time"]) - int(case.history.events["time"].min())
            waited = case.history.ended.seconds - began / 1e9
            return (
                f"{case.reader(fault)} hung in sample {fault['sample']}, and the consumer waited {waited:.0f} s in one call of "
                f"next(), with a timeout of {timeout:g} s"
            )
    return None


_LONG_TO_CLOSE_S = 2.0  # far above what ending healthy workers takes


@diagnosis(
    "close-waits-for-hung-worker",
    cause="Closing waits for workers that cannot end, because they hang in a read.",
    fix="Ask the workers to end, wait for all of them together for a short time, then kill those that are left.",
    explains=("correct-timeout", "no-leftovers"),
    before=("closing-waits-in-vain",),
)
def close_waits_for_hung_worker(case: Case) -> str | None:
    for fault in case.struck(Effect.STALL):
        rank = int(fault["rank"])
        begin = case.history.of(Kind.CLOSING, rank=rank)
        end = case.history.of(Kind.CLOSED, rank=rank)
        if not len(begin) or np.any(case.done["sample"] == fault["sample"]):
            continue
        seconds = (int(end[-1]["time"]) - int(begin[0]["time"])) / 1e9 if len(end) == len(begin) else None
        if seconds is not None and seconds < _LONG_TO_CLOSE_S:
            continue
        took = "had not ended when the trial was cut" if seconds is None else f"took {seconds:.1f} s"
        return f"closing {took}, while {case.reader(fault)} hung in sample {fault['sample']}"
    return None


@diagnosis(
    "exhausted-after-one-epoch",
    cause="The iterator of the first epoch is used again, and it is exhausted.",
    fix="Make a new iterator in every __iter__.",
    explains=("fresh-epoch", "honest-length"),
)
def exhausted_after_one_epoch(case: Case) -> str | None:
    for epoch in case.ledger.epochs[1:]:
        ended = [stop in (Stop.END, Stop.NEVER_BEGAN) for stop in epoch.stops]
        if all(ended) and not any(epoch.batches) and any(case.ledger.first.batches) and not any(epoch.errors):
            return f"epoch {epoch.number} ended at its first call of next(), after an epoch 0 of {sum(case.ledger.first.batches)} batches"
    return None


@diagnosis(
    "stale-batches-delivered",
    cause="A later epoch begins with batches that were read ahead for the epoch before, which was stopped early, and then starts again.",
    fix="When a new epoch begins, throw away what the workers had read ahead, or tag each batch with its epoch.",
    explains=("fresh-epoch",),
    before=("drawn-with-replacement", "goes-on-where-it-was-left", "batch-lost-worker-alive"),
)
def stale_batches_delivered(case: Case) -> str | None:
    later = case.epoch
    if later is case.ledger.first or case.ledger.epochs[later.number - 1].whole:
        return None
    before = case.history.of(Kind.ARRIVED, epoch=later.number - 1)["sample"]
    arrived = case.arrived["sample"]
    starts = np.flatnonzero(arrived == before[0]) if len(before) else before
    stale = int(starts[0]) if len(starts) else 0
    if not stale or np.isin(arrived[:stale], before).any():
        return None
    return (
        f"epoch {later.number} began with {count(stale, 'sample')} that epoch {later.number - 1} had not come to when it was left, "
        f"and only then with sample {before[0]}"
    )


@diagnosis(
    "goes-on-where-it-was-left",
    cause="A later epoch goes on where the epoch before it ended.",
    fix="Make a new iterator in every __iter__, and drop what the old one had read ahead.",
    explains=("fresh-epoch",),
)
def goes_on_where_it_was_left(case: Case) -> str | None:
    first, later = case.ledger.first, case.epoch
    if later is first or not sum(later.batches) or not sum(first.batches):
        return None
    arrived = case.history.of(Kind.ARRIVED, epoch=first.number)
    for rank in range(case.ranks):
        before, after = (np.unique(events["sample"][events["rank"] == rank]) for events in (arrived, case.arrived))
        if len(before) and len(after) and not np.isin(before, after).any() and not case.spec.shuffle:
            of_rank = f" on rank {rank}" if case.ranks > 1 else ""
            return (
                f"epoch {later.number} brought {count(len(after), 'sample')}{of_rank}, none of the {len(before)} that had come in epoch "
                f"{first.number} before it ended"
            )
    return None


def _remaining(case: Case) -> list[str]:
    """The names of the helpers that were left after closing."""
    events = case.history.of(Kind.LEFTOVER)
    helpers = events[np.isin(events["flags"], (Remains.PROCESS, Remains.THREAD))]
    return [case.history.text(event) for event in helpers] or [
        str(entry["name"]) for entry in case.history.ended.leftovers if entry["what"] == "process"
    ]


@diagnosis(
    "workers-kept-after-break",
    cause="The helpers of an epoch that a break ended early keep running.",
    fix="End them when the iterator is dropped (in a finally of the generator, or by weakref.finalize) and in close().",
    explains=("no-leftovers",),
    before=("helpers-not-ended",),
)
def workers_kept_after_break(case: Case) -> str | None:
    left = case.history.of(Kind.BROKE)
    names = _remaining(case)
    if not len(left) or not names:
        return None
    return f"epoch 0 was left after {count(int(left[0]['aux']) + 1, 'batch')}, and {names[0]} remained" + (
        f", with {len(names) - 1} more" if len(names) > 1 else ""
    )


@diagnosis(
    "closing-waits-in-vain",
    cause="Closing waits for helpers that were never asked to end.",
    fix="Ask them to end before waiting, by an event or a signal, and not by a queue that the garbage collector may have removed "
    "already.",
    explains=("no-leftovers",),
    before=("workers-kept-after-break",),
)
def closing_waits_in_vain(case: Case) -> str | None:
    ended = case.history.ended
    for rank in range(case.ranks):
        begun, closed = (len(case.history.of(kind, rank=rank)) for kind in (Kind.CLOSING, Kind.CLOSED))
        others = [entry for entry in ended.evidence if entry.get("pid") not in case.consumers.values()]
        if begun > closed and ended.cut in endings.HUNG and others:
            return f"closing had not ended after {ended.seconds:.0f} s, and {count(len(others), 'helper process')} lived, idle"
    return None


@diagnosis(
    "helpers-not-ended",
    cause="The loader's helpers outlive it.",
    fix="End and join them at the end of the epoch and in close(); daemons end with the interpreter only.",
    explains=("no-leftovers",),
)
def helpers_not_ended(case: Case) -> str | None:
    names = _remaining(case)
    return f"{names[0]} remained" + (f", with {len(names) - 1} more" if len(names) > 1 else "") if names else None
