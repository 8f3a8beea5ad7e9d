"""In which order the samples of an epoch arrived."""

from __future__ import annotations

import numpy as np

from ...harness.contract.choices import Unshuffled
from ...harness.contract.job import Contract
from ...harness.sources.base import find, truth
from ...harness.sources.truth import Walk
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
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


def promised(contract: Contract, spec: TrialSpec) -> Unshuffled | None:
    """In which order samples come without shuffling; None: it was neither declared nor inferred."""
    inferred = contract.unshuffled is None or "unshuffled" in contract.inferred
    in_memory = find(spec.source).offers == "dataset"
    if inferred and (contract.short_batches == "per-worker" or (in_memory and truth(spec).walk is Walk.SHARE)):
        return "per-worker"
    return contract.unshuffled or ("source" if in_memory else None)


def places(history: History, epoch: int, rank: int, padding: int = 0) -> Ids:
    """For each sample that a rank got, in order of arrival, its place in the source: by the name of its file, then by its id.

    Later arrivals of a sample are left out, and samples without an id; so are those at the end that may be padding: they arrived more
    than once on all ranks together.

    Args:
        padding: how many samples may be repeated on all ranks together.
    """
    ids = arrived(history, epoch, rank)
    if padding:
        everywhere = np.concatenate(by_rank(history, epoch))
        end = ids[-padding:]
        repeated = np.array([np.count_nonzero(everywhere == sample) > 1 for sample in end], np.bool_)
        once = np.flatnonzero(~repeated)
        ids = ids[: len(ids) - (len(end) - int(once[-1]) - 1 if len(once) else len(end))]
    ids = ids[(ids >= 0) & (ids < history.spec.samples)]
    _, first = np.unique(ids, return_index=True)
    ids = ids[np.sort(first)]
    place = np.arange(history.spec.samples)
    known = sorted(truth(history.spec).files)
    if known:
        place[np.concatenate([np.arange(start, start + number) for _, start, number in known])] = np.arange(
            sum(number for *_, number in known)
        )
    found: Ids = place[ids]
    return found


def rows(places: Ids) -> int:
    """Into how many rising sequences an order can be split at least: 1 if it rises, 2 if it is that of two workers in turn.

    >>> rows(np.array([0, 2, 1, 3])), rows(np.array([8, 9, 4, 5, 0, 1]))
    (2, 3)
    """
    ends: list[int] = []  # of the sequences so far, the largest first
    for place in places.tolist():
        at = next((number for number, end in enumerate(ends) if end < place), None)
        if at is None:
            ends.append(place)
        else:
            ends[at] = place
    return len(ends)
