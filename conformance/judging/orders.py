"""In which order the samples of an epoch arrived."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from .ledger import Epoch, Ids, Ledger

ENOUGH = 8
"""The samples of a rank from which on two orders are not equal by chance: 8 samples have 40320 orders."""


def arrived(history: History, epoch: int, rank: int) -> Ids:
    """The ids in the order in which one rank got them in a logical epoch; -1 for a sample without an id."""
    found: Ids = history.of(Kind.ARRIVED, epoch=epoch, rank=rank)["sample"].astype(np.int64)
    return found


def by_rank(history: History, epoch: int) -> list[Ids]:
    """For each rank the order of a logical epoch."""
    return [arrived(history, epoch, rank) for rank in range(history.spec.topology.ranks)]


def alike(one: list[Ids], other: list[Ids]) -> bool:
    """Whether all ranks got the same samples in the same order."""
    return len(one) == len(other) and all(np.array_equal(first, second) for first, second in zip(one, other, strict=True))


def rising(ids: Ids, repeats: int = 0) -> bool:
    """Whether each sample comes after those with smaller ids; padding may begin again with the smallest, ``repeats`` times."""
    return int(np.count_nonzero(np.diff(ids) <= 0)) <= min(1, repeats)


def undisturbed(ledger: Ledger) -> list[Epoch]:
    """The epochs that all ranks consumed to the end, without an error: those whose order can be compared."""
    return [epoch for epoch in ledger.epochs if epoch.whole and not any(epoch.errors)]


def told_the_epoch(history: History) -> bool:
    """Whether the consumer could tell the loader the number of each epoch."""
    begun = history.of(Kind.EPOCH)
    return bool(len(begun)) and bool(np.all(begun["flags"] & 1))


def number_of(history: History, epoch: int) -> int:
    """The number that ``set_epoch`` got for a logical epoch."""
    return history.logical_epochs[epoch][-1][1]
