"""Whether the process that used the loader died, and who caused it."""

from __future__ import annotations

import signal

from ...harness.faults import Effect
from ...harness.processes.rank import BROKE
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History

FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGXCPU)
"""Signals by which a machine or an operator ends a process: the out-of-memory killer, a batch system, a closed
terminal."""


def death(history: History, rank: int) -> str:
    """How the process of a rank died because of the loader: ``was killed by signal SIGSEGV``; empty: it did not.

    A process that ends before its normal end counts, whatever its exit code. Not counted: a fault that kills the
    reading process, if that is the consumer's process; signals from outside; an error of badbatch itself.
    """
    code = history.ended.ranks[rank] if rank < len(history.ended.ranks) else None
    if code is None or code == BROKE or rank in history.finished_ranks:
        return ""
    if code < 0 and -code in FROM_OUTSIDE:
        return ""
    if _struck_here(history, rank):
        return ""
    if code < 0:
        try:
            return f"was killed by signal {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal
            return f"was killed by signal {-code}"
    return f"exited with code {code}, without an error"


def _struck_here(history: History, rank: int) -> bool:
    """Whether a fault that kills took effect on this rank: ``crash-surfaces`` checks what the loader did then."""
    lethal = [sample for sample, fault in history.spec.plan.items() if fault.effect is Effect.CRASH]
    struck = history.of(Kind.FAULT, rank=rank)["sample"]
    return any(int(sample) in lethal for sample in struck)


def last_seen(history: History, rank: int) -> str:
    """What the consumer of a rank was doing last: ``in call 3 of next() in epoch 0``."""
    mine = history.of(
        Kind.BUILDING, Kind.BUILT, Kind.EPOCH, Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, Kind.EPOCH_DONE, Kind.CLOSING,
        Kind.CLOSED, rank=rank,
    )  # fmt: skip
    if not len(mine):
        return "before the loader was built"
    last = mine[-1]
    kind, epoch = int(last["kind"]), int(last["epoch"])
    if kind == Kind.BUILDING:
        return "while the loader was built"
    if kind == Kind.EPOCH:
        return f"in iter() in epoch {epoch}"
    if kind == Kind.ASK:
        return f"in call {int(last['aux']) + 1} of next() in epoch {epoch}"
    if kind == Kind.CLOSING:
        return "while the loader was closed" if last["flags"] else f"while the iterator of epoch {epoch} was dropped"
    return "after the loader was closed" if kind == Kind.CLOSED and last["flags"] else "between two calls of the loader"
