"""Diagnoses of loaders that deliver every sample, in an order that they do not promise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ...harness.trial.event_log import Kind
from ..judging import orders
from ..judging.ledger import Ids
from .base import diagnosis
from .case import Case
from .comparison import Comparison

_DIFFER = ("epochs-differ",)
_SEEDED = ("seeded-order",)


def _epochs(case: Case) -> dict[int, list[Ids]]:
    """The order of each epoch that ran to its end, rank by rank."""
    return {epoch.number: orders.by_rank(case.history, epoch.number) for epoch in orders.undisturbed(case.ledger)}


def _in_source_order(case: Case, order: list[Ids]) -> bool:
    return all(orders.rising(ids, case.expected.pad_budget) for ids in order)


def _repeated(case: Case) -> tuple[int, int] | None:
    """The numbers of two epochs that should differ and have one order; None: there are none."""
    found = _epochs(case)
    for number, order in found.items():
        for before in range(number):
            numbers = orders.number_of(case.history, before), orders.number_of(case.history, number)
            if before in found and numbers[0] != numbers[1] and orders.alike(found[before], order) and not _in_source_order(case, order):
                return numbers
    return None


@diagnosis(
    "shuffle-ignored",
    cause="The loader does not look at job.shuffle.",
    fix="Pass it on (shuffle=True, or a sampler that draws a permutation), or declare @loader(shuffles=False).",
    explains=_DIFFER,
)
def shuffle_ignored(case: Case) -> str | None:
    found = _epochs(case)
    if not found or not all(_in_source_order(case, order) for order in found.values()):
        return None
    return f"all {len(found)} epochs came in the order of the source, although job.shuffle is True"


@diagnosis(
    "epoch-unknown-to-persistent-workers",
    cause="Workers that stay for the next epoch have copies of the loader, and are not told the number of the epoch.",
    fix="Draw the order in the consumer's process, or share the number of the epoch with the workers (multiprocessing.Value).",
    explains=_DIFFER,
    before=("same-order-each-epoch",),
)
def epoch_unknown_to_persistent_workers(case: Case) -> str | None:
    found = _repeated(case)
    if found is None or not case.spec.topology.persistent:
        return None
    return f"with persistent workers epoch {found[1]} has the order of epoch {found[0]}"


@diagnosis(
    "same-order-each-epoch",
    cause="The number of the epoch does not go into the order.",
    fix="Seed the permutation with the seed and the epoch together, and pass set_epoch() on to the sampler.",
    explains=_DIFFER,
)
def same_order_each_epoch(case: Case) -> str | None:
    found = _repeated(case)
    if found is None:
        return None
    told = f"set_epoch({found[1]}) was called" if orders.told_the_epoch(case.history) else "the loader has no set_epoch()"
    return f"epoch {found[1]} has the order of epoch {found[0]}, and {told}"


@diagnosis(
    "set-epoch-ignored",
    cause="The loader counts its epochs itself, or goes on with one generator, and set_epoch() has no effect.",
    fix="Draw the permutation of an epoch from a new generator, seeded with the seed and the number that set_epoch() gave.",
    explains=_DIFFER,
)
def set_epoch_ignored(case: Case) -> str | None:
    found = _epochs(case)
    for number, order in found.items():
        for before in range(number):
            same = orders.number_of(case.history, before) == orders.number_of(case.history, number)
            if same and before in found and orders.told_the_epoch(case.history) and not orders.alike(found[before], order):
                return f"set_epoch({orders.number_of(case.history, number)}) was called twice, and two orders came"
    return None


def _batches(case: Case) -> Iterator[tuple[Ids, list[Ids]]]:
    """For each rank the places in the source of the samples of the first epoch, together and batch by batch."""
    for rank in range(case.spec.topology.ranks):
        arrived = case.history.of(Kind.ARRIVED, epoch=0, rank=rank)
        together = orders.places(case.history, 0, rank, case.expected.pad_budget)
        steps = arrived["aux"][: len(together)]
        if len(arrived) > len(together) + case.expected.pad_budget:  # repeated, or without an id: another check's
            continue
        yield together, [together[steps == step] for step in np.unique(steps)]


@diagnosis(
    "batches-in-another-order",
    cause="Batches are delivered as workers finish them, or from another end, and not in the order of the sampler.",
    fix="Number the batches when they are given to the workers, and keep one that comes early until it is its turn.",
    explains=("declared-order",),
)
def batches_in_another_order(case: Case) -> str | None:
    for together, batches in _batches(case):
        if orders.rows(together) > 1 and len(batches) > 1 and all(orders.rising(batch) for batch in batches):
            late = [number for number, (one, two) in enumerate(itertools.pairwise(batches), 1) if two[0] < one[0]]
            if late:
                return f"the samples of each batch are in order, and batch {late[0]} comes after one that follows it"
    return None


@diagnosis(
    "samples-in-another-order",
    cause="The loader shuffles although the job does not, or it lists the source in an order of its own.",
    fix="Shuffle only if job.shuffle is True, and sort what is listed, or declare @loader(unshuffled=...).",
    explains=("declared-order",),
)
def samples_in_another_order(case: Case) -> str | None:
    for together, batches in _batches(case):
        mixed = [number for number, batch in enumerate(batches) if not orders.rising(batch)]
        if orders.rows(together) > 1 and mixed:
            return f"already within batch {mixed[0]} the samples are not in the order of the source"
    return None


def _alike(comparison: Comparison, role: str) -> Iterator[bool]:
    """For each epoch that ran to its end in both trials, whether it has the order of the trial in that role."""
    run, other = comparison.trials["run"], comparison.trials[role]
    comparable = {epoch.number for epoch in orders.undisturbed(other.ledger)}
    for epoch in orders.undisturbed(run.ledger):
        if epoch.number in comparable:
            yield orders.alike(orders.by_rank(run.history, epoch.number), orders.by_rank(other.history, epoch.number))


@diagnosis(
    "order-not-from-the-seed",
    cause="The order does not follow from job.seed: it comes from a generator without a seed, or from the timing of the workers.",
    fix="Draw the permutation from a generator that is seeded with job.seed and the epoch, or declare "
    '@loader(order="free").',
    explains=_SEEDED,
)
def order_not_from_the_seed(comparison: Comparison) -> str | None:
    alike = list(_alike(comparison, "again"))
    if not alike or alike[0]:
        return None
    return f"two runs with the seed {comparison.trials['run'].spec.seed} have different orders from the first epoch on"


@diagnosis(
    "seed-used-once",
    cause="Only the first epoch is drawn from the seed.",
    fix="Seed the permutation of every epoch, with the seed and the number of the epoch together.",
    explains=_SEEDED,
)
def seed_used_once(comparison: Comparison) -> str | None:
    alike = list(_alike(comparison, "again"))
    if not alike or not alike[0] or all(alike):
        return None
    return f"the first epoch is the same in two runs, and epoch {alike.index(False)} is not"


@diagnosis(
    "order-depends-on-workers",
    cause="The number of workers goes into the order: each worker shuffles a share of its own.",
    fix='Draw one permutation, and give its batches to the workers in turn, or declare @loader(order="seeded").',
    explains=_SEEDED,
)
def order_depends_on_workers(comparison: Comparison) -> str | None:
    if "reference" not in comparison.trials or not all(_alike(comparison, "again")) or all(_alike(comparison, "reference")):
        return None
    one, other = (comparison.trials[role].spec.topology.workers for role in ("run", "reference"))
    return f"two runs with workers={one} have the same order, and a run with workers={other} has another"
