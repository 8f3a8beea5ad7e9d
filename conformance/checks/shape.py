"""Checks on the shape of an epoch: sizes of batches, its length, and the ranks' steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...harness.contract.job import Contract
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.phases import Phase
from ...harness.trial.spec import TrialSpec
from ..judging.accounting import readings
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Ledger, Stop
from .base import Violation, check, count, from_an_error, was

Sizes = npt.NDArray[np.int64]


@check(
    "full-batches",
    title="Only the last batch of an epoch may be short, and none is empty",
    why="A batch of one breaks batch normalisation, an empty batch breaks the training step; both errors appear far from their cause.",
    source="torch.utils.data.DataLoader documentation, drop_last",
)
def full_batches(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """If skips shorten batches by contract, one for each skip at most; if workers make their own batches, the last of each."""
    for epoch in ledger.epochs:
        for rank in range(len(epoch.stops)):
            got = history.of(Kind.GOT, epoch=epoch.number, rank=rank)["sample"]
            got = got[got >= 0]
            where = f"epoch {epoch.number}" + (f", rank {rank}" if history.spec.topology.ranks > 1 else "")
            if np.any(got == 0):
                yield Violation("no batch is empty", f"{where}: {count(int(np.sum(got == 0)), 'empty batch')}")
            if np.any(got > history.spec.batch_size):
                yield Violation(
                    f"a batch has at most {history.spec.batch_size} samples", f"{where}: one has {int(got.max())}"
                )
            shortened = expected.contract.on_damage == "skip" and expected.contract.batches == "short"
            allowed = expected.short_batches if shortened else 0
            if expected.per_worker and not (expected.per_worker_is_inferred and _plain(history.spec)):
                promised, happened = _short_of_workers(history, epoch, rank, got, allowed)
            else:
                promised, happened = _short_of_rank(history, epoch, rank, got, allowed, expected)
            if promised:
                yield Violation(promised, f"{where}: {happened}")


def _short_of_rank(
    history: History, epoch: Epoch, rank: int, got: Sizes, allowed: int, expected: Expectation
) -> tuple[str, str]:
    """What was promised and what happened, if too many batches of a rank are short; otherwise empty texts."""
    size = history.spec.batch_size
    ended = epoch.stops[rank] is Stop.END
    before_last = got[:-1] if ended else got
    short = int(np.sum((before_last < size) & (before_last > 0)))
    if short > allowed:
        promised = "only the last batch is short" if not allowed else _at_most(allowed)
        return promised, f"{_were_short(short, ' before the last')} (sizes {_sizes(got)})"
    if ended and len(got) and got[-1] < size and not allowed and (which := _no_short_last(history, expected)):
        return f"with {which} no batch is short", f"the last has {int(got[-1])}"
    return "", ""


def _short_of_workers(history: History, epoch: Epoch, rank: int, got: Sizes, allowed: int) -> tuple[str, str]:
    """The same, if each worker batches its own samples and may end with a short batch."""
    size, workers = history.spec.batch_size, history.spec.topology.workers
    short = int(np.sum((got < size) & (got > 0)))
    if not allowed and short and history.spec.drop_last:
        return "with drop_last no batch is short", f"{_were_short(short)} (sizes {_sizes(got)})"
    if not allowed and (early := _followed(history, epoch.number, rank)):
        after = "it" if early == 1 else "them"
        return "only the last batch of each worker is short", f"{_were_short(early)}, and the same worker sent more after {after}"
    if short > allowed + workers:
        each = f": the last of each of {count(workers, 'worker')}" if not allowed else ""
        return _at_most(allowed + workers) + each, f"{_were_short(short)} (sizes {_sizes(got)})"
    return "", ""


def _at_most(number: int) -> str:
    return f"at most {count(number, 'batch')} {'is' if number == 1 else 'are'} short"


def _were_short(number: int, which: str = "") -> str:
    return f"{count(number, 'batch')}{which} {was(number)} short"


def _sizes(got: Sizes) -> str:
    return ", ".join(str(int(n)) for n in got[:12]) + (" …" if len(got) > 12 else "")


def _plain(spec: TrialSpec) -> bool:
    """Whether the trial only tests that an epoch is whole: only there an inferred trait can fail."""
    return spec.phases == (Phase(),) and not (spec.plan or spec.shuffle or spec.drop_last or spec.timeout_s)


def _followed(history: History, epoch: int, rank: int) -> int:
    """How many short batches are followed by another one of the same reader, as far as the record shows who read."""
    reads = readings(history, epoch, Kind.READ)
    reads = reads[reads["rank"] == rank]
    reader = {int(read["sample"]): (int(read["pid"]), int(read["aux"])) for read in reads}
    arrived = history.of(Kind.ARRIVED, epoch=epoch, rank=rank)
    last: dict[tuple[int, int], bool] = {}  # from a reader to whether its last batch so far is short
    early = 0
    for got in history.of(Kind.GOT, epoch=epoch, rank=rank):
        samples = arrived["sample"][arrived["aux"] == got["aux"]]
        owners = {reader.get(int(sample)) for sample in samples}
        owner = owners.pop() if len(owners) == 1 else None
        if owner is None:
            continue
        early += last.get(owner, False)
        last[owner] = bool(0 < got["sample"] < history.spec.batch_size)
    return early


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
            if (
                epoch.stops[rank] is Stop.END
                and epoch.batches[rank] != said[0]
                and not _as_if_together(history, epoch, rank, said[0], expected)
            ):
                yield Violation(
                    f"len() equals the batches that come{where}",
                    f"len() said {said[0]}, and {count(epoch.batches[rank], 'batch')} came in epoch {epoch.number}",
                    follows_from=from_an_error(epoch, expected),
                )
                break
        else:
            if len(set(said)) > 1:
                yield Violation(f"len() stays the same{where}", f"it said {said[0]} before and {said[1]} after the epoch")


def _as_if_together(history: History, epoch: Epoch, rank: int, said: int, expected: Expectation) -> bool:
    """Whether len() counts the samples of a rank as if one process batched them, although each worker does.

    torch documents that the len() of such a loader is only its best guess.
    """
    if not expected.per_worker:
        return False
    size, workers = history.spec.batch_size, history.spec.topology.workers
    came = len(history.of(Kind.ARRIVED, epoch=epoch.number, rank=rank))
    if history.spec.drop_last:
        return epoch.batches[rank] <= said <= (came + workers * (size - 1)) // size
    return said == -(-came // size)


def _several_ranks(contract: Contract, spec: TrialSpec) -> str | None:
    return "the contract says uneven_ranks=True" if contract.uneven_ranks else None


@check(
    "ranks-in-step",
    title="All ranks make the same number of steps",
    why="Distributed training waits in its next all_reduce for the rank that has ended: the healthy rank hangs without end.",
    source="torch.nn.parallel.DistributedDataParallel documentation, uneven inputs (Join)",
    exercised=lambda spec: {topology.ranks for topology in spec.topologies} == {spec.topology.ranks} != {1},
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
