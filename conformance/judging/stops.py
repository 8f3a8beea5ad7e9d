"""What is owed although the loader stops at the first error: batches before the damaged one, and the shares of other ranks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import Events, History
from .expectation import Expectation
from .ledger import Epoch, Mask, Stop

_DURING_EPOCH = (Where.NEXT, Where.ITER, Where.OUTSIDE)


def stopped(history: History, epoch: Epoch, expected: Expectation) -> bool:
    """Whether an epoch may have ended with its first error, as the contract allows.

    An oddity is no reason to stop. A stop that was only inferred is a minimum: a loader that continues after another
    kind of error than that of the probe does better, and then owes what follows.
    """
    if expected.goes_on or not any(epoch.errors) or not np.any(expected.owed != Owed.GOOD):
        return False
    return not (expected.stop_is_inferred and any(went_on(history, epoch.number, rank) for rank in range(len(epoch.stops))))


def went_on(history: History, epoch: int, rank: int) -> int:
    """How many batches arrived on a rank after its first error."""
    raised = history.of(Kind.RAISED, epoch=epoch, rank=rank)
    raised = raised[np.isin(raised["flags"], _DURING_EPOCH)]
    if not len(raised):
        return 0
    got = history.of(Kind.GOT, epoch=epoch, rank=rank)
    return int(np.count_nonzero(got["time"] > raised[0]["time"]))


def owed_despite_stop(history: History, epoch: Epoch, expected: Expectation, reads: Events, missing: Mask) -> Mask:
    """The good samples of a stopped epoch that are still owed, among those that nothing else accounts for.

    Args:
        reads: the beginnings of reads in this epoch.
        missing: the good samples that did not arrive and are not collateral.
    """
    before = before_the_damage(history, epoch, expected, reads)
    owed = before.copy()
    elsewhere = np.zeros(len(missing), np.bool_)  # read on a rank that stopped: they may belong to it
    for rank, errors in enumerate(epoch.errors):
        mine = _known(reads[reads["rank"] == rank], len(missing))
        if errors or epoch.stops[rank] is not Stop.END:
            elsewhere[mine] = True
        else:
            owed[mine] = True
    owed &= missing & (before | ~elsewhere)
    owed |= _beyond_the_shares(history, epoch, expected, reads, missing & ~owed)
    return owed


def before_the_damage(history: History, epoch: Epoch, expected: Expectation, reads: Events) -> Mask:
    """The good samples in the batches that come before the damaged one of a rank that stopped, in the loader's own order.

    That is the order in which a process or thread read, if each batch is read by one of them. A shuffle may have drawn
    from a buffer, and files on disk are read ahead: neither shows the order of the batches. Nor does a reader that
    reads the samples of others too.
    """
    owed = np.zeros(len(expected.owed), np.bool_)
    spec = expected.spec
    if spec.shuffle or not expected.truth.reads_recorded or expected.contract.replacement:
        return owed
    if _shared(reads, spec.samples):
        return owed
    for rank, errors in enumerate(epoch.errors):
        mine = reads[reads["rank"] == rank]
        orders = [
            _known(mine[(mine["pid"] == pid) & (mine["aux"] == thread)], len(owed))
            for pid, thread in sorted(set(zip(mine["pid"].tolist(), mine["aux"].tolist(), strict=True)))
        ]
        if not errors or epoch.stops[rank] is Stop.NEVER_BEGAN or not _batch_by_batch(history, epoch.number, rank, orders):
            continue
        for order in orders:
            damaged = np.flatnonzero(expected.owed[order] != Owed.GOOD)
            if len(damaged):
                owed[order[: int(damaged[0]) // spec.batch_size * spec.batch_size]] = True
    return owed & expected.good


def _shared(reads: Events, samples: int) -> bool:
    """Whether two processes read the same sample: then each reads samples that are not its own."""
    readers = np.zeros(samples, np.int64)
    for pid in np.unique(reads["pid"]):
        readers[np.unique(_known(reads[reads["pid"] == pid], samples))] += 1
    return bool(np.any(readers > 1))


def _known(events: Events, samples: int) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = events["sample"][(events["sample"] >= 0) & (events["sample"] < samples)].astype(np.int64)
    return found


def _batch_by_batch(history: History, epoch: int, rank: int, orders: list[npt.NDArray[np.int64]]) -> bool:
    """Whether each batch of a rank is read by one reader, as far as can be seen: there is only one, or all arrived batches were."""
    if len(orders) == 1:
        return True
    arrived = history.of(Kind.ARRIVED, epoch=epoch, rank=rank)
    batches = [set(arrived["sample"][arrived["aux"] == step].tolist()) for step in np.unique(arrived["aux"])]
    return bool(batches) and all(any(batch <= set(order.tolist()) for order in orders) for batch in batches)


def _beyond_the_shares(history: History, epoch: Epoch, expected: Expectation, reads: Events, missing: Mask) -> Mask:
    """Missing samples in excess of the shares of the ranks that stopped, if shares are equal."""
    spec = expected.spec
    ranks = spec.topology.ranks
    none = np.zeros(len(missing), np.bool_)
    if ranks == 1 or expected.contract.uneven_ranks or not expected.truth.reads_recorded:
        return none
    share = -(-spec.samples // ranks)
    # A share that stopped may lose what did not arrive from it, minus the damaged samples, which are not among the
    # missing.
    forgiven = expected.drop_budget - int(np.count_nonzero((epoch.arrivals == 0) & expected.good & ~missing))
    arrived = history.of(Kind.ARRIVED, epoch=epoch.number)
    for rank, errors in enumerate(epoch.errors):
        if errors or epoch.stops[rank] is not Stop.END:
            own = np.unique(_known(reads[reads["rank"] == rank], len(missing)))
            damaged = int(np.count_nonzero((expected.owed[own] != Owed.GOOD) & (epoch.arrivals[own] == 0)))
            forgiven += share - damaged - len(np.unique(arrived["sample"][arrived["rank"] == rank]))
    candidates = np.flatnonzero(missing)
    none[candidates[max(0, forgiven) :]] = True
    return none
