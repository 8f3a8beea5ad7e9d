"""Checks on how an epoch ends: that it ends, in time, and not silently after a process died."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from ...harness.contract.job import Contract
from ...harness.faults import Effect
from ...harness.trial import endings
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import Events, History
from ...harness.trial.spec import CLOSE_WITHIN_S, TrialSpec
from ..judging.deaths import death, last_seen
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger, Stop
from ..judging.patience import SURFACES_WITHIN_S, grace_s, pending, waited_longer, waited_s
from .base import Violation, check, count, with_effects

_AGAIN = 2  # reads of a sample after its error: one may be a deliberate retry
_TOO_EARLY = 0.9  # of the timeout: clocks and polling intervals differ by less


@check(
    "finite-epoch",
    title="Every epoch ends",
    why="A job that waits or repeats without end uses its whole allocation and reports nothing.",
    source="the iterator protocol: an iterator over a finite data set ends with StopIteration",
    implies=("correct-timeout", "crash-surfaces", "no-lost-batches", "no-leftovers", "contract-kept", "bounded-reads"),
)
def finite_epoch(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Within ceil(samples / batch_size) + allowance calls of next(), before the trial's deadline, in a process that stays alive."""
    yield from _died(history)
    for epoch in ledger.epochs:
        more_lives = len(history.logical_epochs[epoch.number]) - 1  # each may begin with batches that are shorter
        allowed = history.spec.allowed_calls + more_lives * (history.spec.topology.workers + 2)
        for rank, (stop, calls) in enumerate(zip(epoch.stops, epoch.calls, strict=True)):
            where = f"epoch {epoch.number}" + (f", rank {rank}" if len(epoch.stops) > 1 else "")
            if stop is Stop.CUT and _was_waiting(history, rank, epoch.number):
                yield Violation(
                    "every call of next() returns or raises",
                    f"{where}: call {calls} of next() never returned ({_cut(history)})",
                )
            elif stop is Stop.CAPPED and (expected.goes_on or epoch.errors[rank] == 0 or _reads_again(history, epoch.number, rank)):
                errors = epoch.errors[rank]
                told = f", {count(errors, 'error')} among them" if errors else ""
                yield Violation(
                    f"the epoch ends within {allowed} calls of next()",
                    f"{where}: it had not ended after {calls} calls{told}{_repeats(history, rank, epoch.number)}",
                )
            elif stop is Stop.END and calls > allowed:
                yield Violation(
                    f"the epoch ends within {allowed} calls of next()",
                    f"{where}: it took {calls} calls",
                )


def _reads_again(history: History, epoch: int, rank: int) -> bool:
    """Whether calls of next() after an error read the damaged sample again: the iterator is stuck, not finished."""
    raised = history.of(Kind.RAISED, epoch=epoch, rank=rank)
    struck = history.of(Kind.FAULT, rank=rank)
    if not len(raised) or not len(struck):
        return False
    after = struck[struck["time"] > raised[0]["time"]]
    again = after["sample"][np.isin(after["sample"], struck["sample"][struck["time"] <= raised[0]["time"]])]
    return bool(len(again) and np.bincount(again).max() >= _AGAIN)


def _died(history: History) -> Iterator[Violation]:
    for rank in range(history.spec.most_ranks):
        how = death(history, rank)
        if how:
            of_rank = f" of rank {rank}" if history.spec.topology.ranks > 1 else ""
            yield Violation(
                "the process that uses the loader lives to the end of the epoch",
                f"the process{of_rank} {how}, {last_seen(history, rank)}",
            )


def _was_waiting(history: History, rank: int, epoch: int) -> bool:
    """Whether the loader, and not a fault in the consumer's own process, made the consumer wait."""
    mine = history.of(
        Kind.EPOCH, Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, Kind.EPOCH_DONE, Kind.WAITED, epoch=epoch, rank=rank
    )
    if not len(mine) or mine[-1]["kind"] not in (Kind.ASK, Kind.EPOCH):
        return False
    # A stall is proof; at a deadline the call may only have been slow.
    if history.ended.cut == endings.STALLED:
        return True
    _, needed, waited = pending(history, rank)
    return history.ended.cut == endings.OUT_OF_TIME and waited >= needed


def _cut(history: History) -> str:
    seconds = f"{history.ended.seconds:.0f} s"
    if history.ended.why:
        return f"{history.ended.why}; ended after {seconds}"
    if history.ended.cut == endings.STALLED:
        return f"no process worked or recorded anything; ended after {seconds}"
    return f"ended at the deadline, after {seconds}"


def _repeats(history: History, rank: int, epoch: int) -> str:
    raised = history.of(Kind.RAISED, epoch=epoch, rank=rank)
    if len(raised) < 2:
        return ""
    said = history.text(raised[-1]).strip().splitlines()
    same = sum(history.text(event) == history.text(raised[-1]) for event in raised)
    return f"; the same error {same} times: {said[-1][:100]}" if said and same > 1 else ""


def _honours_timeout(contract: Contract, spec: TrialSpec) -> str | None:
    if not contract.timeout:
        return "the loader declares that it has no timeout"
    if spec.topology.workers == 0:
        return "without workers the read blocks the consumer's own process: nothing could time it out"
    return None


@dataclasses.dataclass(frozen=True)
class _Wait:
    """One call of next(): how long it took, and how long its thread waited for a processor meanwhile."""

    rank: int
    seconds: float
    starved_s: float
    begin: int
    end: int
    outcome: int


@check(
    "correct-timeout",
    title="A hung read surfaces as a timeout, on time; a slow one does not",
    why="Without it one stalled network read stops the job without end; a timeout that fires on slow reads kills healthy jobs.",
    source="torch.utils.data.DataLoader documentation, timeout; the grace is the larger of 1 s and half the timeout",
    exercised=lambda spec: spec.timeout_s > 0,
    needs=_honours_timeout,
    implies=("no-leftovers",),
)
def correct_timeout(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Between ``timeout`` and ``timeout`` + grace after the consumer began to wait; afterwards the loader can be closed."""
    timeout = history.spec.timeout_s
    grace = grace_s(timeout)
    waits = list(_waits(history))
    stalls = with_effects(Effect.STALL)(history.spec)
    errors = [wait for wait in waits if wait.outcome == Kind.RAISED]
    if not stalls:
        yield from _false_alarms(history, errors, timeout)
    else:
        yield from _hung(history, waits, errors, timeout, grace)
    yield from _closing(history)


def _false_alarms(history: History, errors: list[_Wait], timeout: float) -> Iterator[Violation]:
    if errors:
        yield Violation(
            "a slow read or a slow consumer never ends in a timeout",
            f"nothing was hung, yet {count(len(errors), 'error')} reached the consumer, the first after "
            f"{errors[0].seconds:.2f} s",
        )


def _hung(
    history: History, waits: list[_Wait], errors: list[_Wait], timeout: float, grace: float
) -> Iterator[Violation]:
    promised = f"a hung read surfaces between {timeout:g} and {timeout + grace:g} s of waiting"
    struck = history.of(Kind.FAULT)
    for rank in sorted({int(r) for r in struck["rank"]}):
        mine = [wait for wait in waits if wait.rank == rank]
        told = [wait for wait in errors if wait.rank == rank]
        skips = history.of(Kind.SKIPPED, rank=rank)
        if told:
            first = told[0]
            if first.seconds < _TOO_EARLY * timeout:
                yield Violation(promised, f"it surfaced after {first.seconds:.2f} s")
            elif first.seconds > timeout + grace + first.starved_s:
                yield Violation(promised, f"it surfaced only after {first.seconds:.2f} s")
        elif len(skips):
            longest = max(mine, key=lambda wait: wait.seconds, default=None)
            if longest is not None and longest.seconds > timeout + grace + longest.starved_s:
                yield Violation(promised, f"it was skipped only after {longest.seconds:.2f} s")
        elif history.ended.cut in endings.HUNG:
            asked = _unanswered(history, rank)
            if asked is not None and waited_longer(history, asked, timeout + grace):
                seconds = waited_s(history, asked)
                yield Violation(promised, f"no error came; the consumer was still waiting after {seconds:.0f} s")
        elif history.complete:
            yield Violation(promised, "no error came, and no skip was reported")


def _unanswered(history: History, rank: int) -> np.void | None:
    """The call of next() in which the consumer of a rank was at the end; None: it was in none."""
    mine = history.of(Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, rank=rank)
    return mine[-1] if len(mine) and mine[-1]["kind"] == Kind.ASK else None


def _waits(history: History) -> Iterator[_Wait]:
    """The calls of next() that returned or raised, in order, on each rank."""
    for rank in range(history.spec.most_ranks):
        mine = history.of(Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, Kind.DELAY, rank=rank)
        asked = None
        delay_before = delay_last = 0
        for event in mine:
            kind = event["kind"]
            if kind == Kind.DELAY:
                delay_last = int(event["sample"])
            elif kind == Kind.ASK:
                asked, delay_before = event, delay_last
            elif asked is not None and not (kind == Kind.RAISED and event["flags"] not in (Where.NEXT, Where.OUTSIDE)):
                yield _Wait(
                    rank=rank,
                    seconds=(int(event["time"]) - int(asked["time"])) / 1e9,
                    starved_s=max(0, _delay_after(mine, event) - delay_before) / 1e9,
                    begin=int(asked["time"]),
                    end=int(event["time"]),
                    outcome=int(kind),
                )
                asked = None


def _delay_after(events: Events, event: np.void) -> int:
    later = events[(events["kind"] == Kind.DELAY) & (events["time"] >= event["time"])]
    return int(later[0]["sample"]) if len(later) else 0


def _closing(history: History) -> Iterator[Violation]:
    promised = f"afterwards the loader can be closed within {CLOSE_WITHIN_S:g} s"
    for rank in range(history.spec.most_ranks):
        begin = history.of(Kind.CLOSING, rank=rank)
        end = history.of(Kind.CLOSED, rank=rank)
        took = [(int(e["time"]) - int(b["time"])) / 1e9 for b, e in zip(begin, end, strict=False)]
        if len(begin) > len(end):
            seconds = waited_s(history, begin[-1])
            if waited_longer(history, begin[-1], CLOSE_WITHIN_S):
                yield Violation(promised, f"closing it had not ended after {seconds:.0f} s")
        elif took and max(took) > CLOSE_WITHIN_S:
            yield Violation(promised, f"closing it took {max(took):.1f} s")


def _has_workers(contract: Contract, spec: TrialSpec) -> str | None:
    return None if spec.topology.workers else "without workers the consumer's own process dies: nothing could tell it"


@check(
    "crash-surfaces",
    title="A dead worker ends in an error at the consumer within 10 s",
    why="If the death of a worker (for lack of memory, say) is not reported, the job hangs, or a third of the epoch is lost.",
    source="torch.utils.data, worker watchdog: the main process must learn of a worker's death",
    exercised=with_effects(Effect.CRASH),
    needs=_has_workers,
    implies=("no-lost-batches", "contract-kept", "exact-skip-count"),
)
def crash_surfaces(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """An end without an error and an endless wait both fail; a reported skip is enough."""
    promised = f"the death of a worker reaches the consumer as an error, within {SURFACES_WITHIN_S:g} s"
    died = history.of(Kind.FAULT)
    for rank in sorted({int(r) for r in died["rank"]}):
        moment = int(died[died["rank"] == rank][0]["time"])
        code = history.ended.ranks[rank] if rank < len(history.ended.ranks) else None
        consumer = history.of(Kind.ASK, rank=rank)
        if code is not None and code != 0 and len(consumer) and history.ended.cut is None:
            yield Violation(promised, f"the training process itself died ({history.ended})")
            continue
        told = history.of(Kind.RAISED, Kind.SKIPPED, Kind.REPORTED, rank=rank)
        told = told[told["time"] >= moment]
        told = told[(told["kind"] != Kind.REPORTED) | (told["aux"] > 0)]
        if len(told):
            seconds = (int(told[0]["time"]) - moment) / 1e9
            if seconds > SURFACES_WITHIN_S + _starved(history, rank):
                yield Violation(promised, f"it took {math.ceil(seconds)} s")
        elif history.ended.cut in endings.HUNG:
            first = died[died["rank"] == rank][0]
            seconds = waited_s(history, first)
            if waited_longer(history, first, SURFACES_WITHIN_S + _starved(history, rank)):
                yield Violation(promised, f"no error came; the consumer still waited after {seconds:.0f} s")
        elif history.complete:
            yield Violation(promised, "the epoch ended silently: no error, no skip reported")


def _starved(history: History, rank: int) -> float:
    delays = history.of(Kind.DELAY, rank=rank)["sample"]
    return float(delays.max() - delays.min()) / 1e9 if len(delays) else 0.0
