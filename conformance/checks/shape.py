"""Checks on the shape of an epoch: sizes of batches, its length, and the ranks' steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...harness.contract.job import Contract
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger, Stop
from .base import Violation, check, count


@check(
    "full-batches",
    title="Only the last batch of an epoch may be short, and none is empty",
    why="A batch of one breaks batch normalisation, an empty batch breaks the training step; both errors appear far from their cause.",
    source="torch.utils.data.DataLoader documentation, drop_last",
)
def full_batches(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """If the contract says that skips shorten batches, at most one batch may be short for each skip."""
    size = history.spec.batch_size
    shortened = expected.contract.on_damage == "skip" and expected.contract.batches == "short"
    for epoch in ledger.epochs:
        for rank in range(history.spec.most_ranks):
            got = history.of(Kind.GOT, epoch=epoch.number, rank=rank)["sample"]
            got = got[got >= 0]
            where = f"epoch {epoch.number}" + (f", rank {rank}" if history.spec.topology.ranks > 1 else "")
            if np.any(got == 0):
                yield Violation("no batch is empty", f"{where}: {count(int(np.sum(got == 0)), 'empty batch')}")
            if np.any(got > size):
                yield Violation(f"a batch has at most {size} samples", f"{where}: one has {int(got.max())}")
            ended = epoch.stops[rank] is Stop.END
            before_last = got[:-1] if ended else got
            short = int(np.sum((before_last < size) & (before_last > 0)))
            allowed = expected.short_batches if shortened else 0
            if short > allowed:
                sizes = ", ".join(str(int(n)) for n in got[:12]) + (" …" if len(got) > 12 else "")
                promised = "only the last batch is short" if not allowed else f"at most {allowed} batches are short"
                were = "was" if short == 1 else "were"
                yield Violation(promised, f"{where}: {count(short, 'batch')} before the last {were} short (sizes {sizes})")
            elif ended and len(got) and got[-1] < size and not allowed and (which := _no_short_last(history, expected)):
                yield Violation(f"with {which} no batch is short", f"{where}: the last has {int(got[-1])}")


def _no_short_last(history: History, expected: Expectation) -> str:
    """What forbids a short last batch; empty: nothing."""
    if history.spec.drop_last:
        return "drop_last"
    return 'tail="pad-batch"' if expected.contract.tail == "pad-batch" else ""


@check(
    "honest-length",
    title="len() is the number of batches that come",
    why="Schedulers, progress bars and epoch loops use len(): a wrong value ends training early or late.",
    source="PEP 424 and torch.utils.data.DataLoader documentation, len(dataloader)",
    exercised=lambda spec: not spec.plan and not spec.stops_early,
)
def honest_length(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """If it exists. Calling it has no side effect: after the epoch it returns the same value."""
    for rank in range(history.spec.most_ranks):
        asked = history.of(Kind.LENGTH, rank=rank)
        if not len(asked):
            continue
        said = [int(value) for value in asked["sample"]]
        where = f" on rank {rank}" if history.spec.topology.ranks > 1 else ""
        for epoch in ledger.epochs:
            if epoch.stops[rank] is Stop.END and epoch.batches[rank] != said[0]:
                yield Violation(
                    f"len() equals the batches that come{where}",
                    f"len() said {said[0]}, and {count(epoch.batches[rank], 'batch')} came in epoch {epoch.number}",
                )
                break
        else:
            if len(set(said)) > 1:
                yield Violation(f"len() stays the same{where}", f"it said {said[0]} before and {said[1]} after the epoch")


def _several_ranks(contract: Contract, spec: TrialSpec) -> str | None:
    return "the contract says uneven_ranks=True" if contract.uneven_ranks else None


@check(
    "ranks-in-step",
    title="All ranks make the same number of steps",
    why="Distributed training waits in its next all_reduce for the rank that has ended: the healthy rank hangs without end.",
    source="torch.nn.parallel.DistributedDataParallel documentation, uneven inputs (Join)",
    exercised=lambda spec: spec.topology.ranks > 1,
    needs=_several_ranks,
)
def ranks_in_step(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """A step is a batch, or an error that the training loop can see.

    The report says what distributed training would do.
    """
    for epoch in ledger.epochs:
        if not epoch.whole:
            continue
        if any(epoch.errors) and (expected.unreachable or not expected.goes_on):
            continue  # the rank whose epoch ended with an error has reported it
        steps = [
            batches + int(np.sum(history.of(Kind.RAISED, epoch=epoch.number, rank=rank)["flags"] == Where.NEXT))
            for rank, batches in enumerate(epoch.batches)
        ]
        if len(set(steps)) <= 1:
            continue
        least, most = min(steps), max(steps)
        waits = [rank for rank, n in enumerate(steps) if n > least]
        seen = history.of(Kind.WAITED, epoch=epoch.number)
        measured = " (seen in lock step)" if len(seen) else ""
        yield Violation(
            "all ranks make the same number of steps",
            f"epoch {epoch.number}: " + ", ".join(f"rank {r} made {n}" for r, n in enumerate(steps)) + "; "
            f"in lock step rank {waits[0]} waits for ever from step {least} on{measured}"
            + ("" if most - least == 1 else f", with {most - least} steps still to go"),
        )
