"""The checks and the relation on the order in which samples arrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from ...harness.contract.job import Contract
from ...harness.sources.base import truth
from ...harness.sources.truth import Walk
from ...harness.trial.history import History
from ...harness.trial.phases import Save
from ...harness.trial.spec import TrialSpec
from ..judging import orders
from ..judging.expectation import Expectation
from ..judging.ledger import Ids, Ledger
from .base import Recorded, Role, Violation, check, count, relation
from .invariance import fewest


def _shuffled(spec: TrialSpec) -> bool:
    """Whether a trial shuffles whole epochs, of a loader that is given no state."""
    resumes = any(phase.load is not None or isinstance(phase.then, Save) for phase in spec.phases)
    return spec.shuffle and not spec.plan and not resumes


def _needs_shuffling(contract: Contract, spec: TrialSpec) -> str | None:
    if contract.shuffles is None and truth(spec).walk is not Walk.INDEX:
        return "only a data set with an index must be shuffled, unless the loader declares shuffles=True"
    return "the loader does not shuffle (shuffles=False)" if contract.shuffles is False else None


def _needs_a_seed(contract: Contract, spec: TrialSpec) -> str | None:
    reason = _needs_shuffling(contract, spec)
    if reason is None and contract.order == "free":
        return 'the order of a shuffled epoch is not promised (order="free")'
    return reason


@check(
    "epochs-differ",
    title="Each epoch is shuffled, in another order",
    why="A loader that ignores shuffle, or that repeats one order, trains on the same batches in each epoch; the loss curve only looks "
    "a little worse.",
    source="torch.utils.data.distributed.DistributedSampler documentation: without set_epoch() the same ordering is always used",
    exercised=lambda spec: _shuffled(spec) and spec.epochs > 1,
    needs=_needs_shuffling,
)
def epochs_differ(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """The order in which samples arrive, rank by rank.

    It is not the source's; epochs with different numbers differ; and where the loader has ``set_epoch``, an epoch with the number of an
    earlier one has its order, unless the contract says ``order="free"``. A rank with fewer than 8 samples is not judged.
    """
    found = {epoch.number: orders.by_rank(history, epoch.number) for epoch in orders.undisturbed(ledger)}
    found = {number: order for number, order in found.items() if min(map(len, order)) >= orders.ENOUGH}
    still = [number for number, order in found.items() if all(orders.rising(ids, expected.pad_budget) for ids in order)]
    if still and not expected.contract.replacement:
        shown = f"epoch {_name(history, still[0])} came in the order of the source: {_begins(found[still[0]][0])}"
        promised = "a job with shuffle=True gets its samples in another order than the source's"
        yield Violation(promised, shown, witnesses=_first(found, still[0]))
        return
    told = orders.told_the_epoch(history)
    for number, order in found.items():
        for before in range(number):
            if before not in found:
                continue
            same_number = told and orders.number_of(history, before) == orders.number_of(history, number)
            same_order = orders.alike(found[before], order)
            if same_order and not same_number:
                yield Violation(
                    "epochs with different numbers have different orders" if told else "each epoch has an order of its own",
                    f"epoch {_name(history, number)} came in the order of epoch {_name(history, before)}: {_begins(order[0])}",
                    witnesses=_first(found, number),
                )
                return
            if same_number and not same_order and expected.contract.order != "free":
                rank, place = _first_difference(found[before], order)
                yield Violation(
                    f"after set_epoch({orders.number_of(history, number)}) the order is that of epoch {_name(history, before)} again",
                    f"it was another one{_on(rank, expected.spec)}: {_begins(order[rank])}, and before {_begins(found[before][rank])}",
                    witnesses=_at(found[before][rank], order[rank], place),
                )
                return


def _name(history: History, epoch: int) -> str:
    """An epoch in words: its number, and whether it is a repetition of that number."""
    number = orders.number_of(history, epoch)
    again = any(orders.number_of(history, earlier) == number for earlier in range(epoch))
    return f"{number}, repeated," if again else str(number)


def _begins(ids: Ids) -> str:
    """The first samples of an order."""
    return ", ".join(map(str, ids[:6])) + (", …" if len(ids) > 6 else "")


def _first(found: Mapping[int, list[Ids]], epoch: int) -> tuple[int, ...]:
    return tuple(map(int, found[epoch][0][:3]))


def _needs_an_order(contract: Contract, spec: TrialSpec) -> str | None:
    if contract.replacement:
        return "samples are drawn with replacement"
    order = orders.promised(contract, spec)
    if order == "free":
        inferred = "unshuffled" in contract.inferred
        return "without workers the loader has an order of its own" if inferred else 'the loader declares unshuffled="free"'
    return "the order was neither declared nor inferred" if order is None else None


def _in_order(spec: TrialSpec) -> bool:
    resumes = any(phase.load is not None or isinstance(phase.then, Save) for phase in spec.phases)
    return not spec.shuffle and not spec.plan and not resumes


@check(
    "declared-order",
    title="Without shuffling the samples come in the order of the source",
    why="Predictions are matched with their inputs by position, and a failure is looked for at the place where it was seen: both need an "
    "order that does not depend on the workers.",
    source="torch.utils.data documentation: a SequentialSampler, and batches in the order of the sampler with any number of workers",
    exercised=_in_order,
    needs=_needs_an_order,
)
def declared_order(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """The order in which samples arrive, rank by rank, in jobs that do not shuffle and have no damage.

    With ``unshuffled="per-worker"`` each worker must keep the order, and not all of them together. Files come in the order of their
    names.
    """
    per_worker = orders.promised(expected.contract, expected.spec) == "per-worker"
    allowed = max(1, expected.spec.topology.workers) if per_worker else 1
    for epoch in orders.undisturbed(ledger):
        for rank in range(expected.spec.topology.ranks):
            places = orders.places(history, epoch.number, rank, expected.pad_budget)
            if orders.rows(places) <= allowed:
                continue
            ids = orders.arrived(history, epoch.number, rank)
            fall = int(np.flatnonzero(np.diff(places) < 0)[0])
            where = f"in epoch {_name(history, epoch.number)}{_on(rank, expected.spec)}" if epoch.number else _on(rank, expected.spec)
            yield Violation(
                "each worker delivers its samples in the order of the source" if per_worker else "samples come in the order of the source",
                f"{count(int(np.count_nonzero(np.diff(places) < 0)), 'time')} a sample came after one that follows it in the source "
                f"{where}: {_begins(ids[max(0, fall - 1):])}".replace("  ", " ").replace(" :", ":"),
                witnesses=tuple(map(int, ids[fall : fall + 2])),
            )
            return


def _again(spec: TrialSpec) -> TrialSpec:
    return dataclasses.replace(spec, repeat=spec.repeat + 1)


def _reference(spec: TrialSpec) -> TrialSpec | None:
    return fewest(spec) if spec.contract.order == "invariant" and not spec.topology.persistent else None


@relation(
    "seeded-order",
    title="One seed gives one order",
    why="A run that cannot be repeated cannot be debugged: the batch before a loss of NaN never comes again.",
    source="pytorch.org, Reproducibility: DataLoader with a seeded generator",
    roles=(
        Role("run", "a trial that shuffles"),
        Role("again", "the same trial, run once more", _again),
        Role("reference", 'where the contract says order="invariant": the same trial without workers, or with the fewest', _reference,
             optional=True),
    ),
    exercised=_shuffled,
    needs=_needs_a_seed,
    explained_by=(
        "no-lost-batches", "no-duplicates", "content-intact", "finite-epoch", "crash-surfaces", "fresh-epoch", "contract-kept",
        "exact-skip-count", "worker-count-invariant",
    ),
)  # fmt: skip
def seeded_order(trials: Mapping[str, Recorded]) -> Iterator[Violation]:
    """The order in which samples arrive, rank by rank and epoch by epoch, in two runs with one seed in one topology.

    With other numbers of workers it is compared only where the contract says ``order="invariant"``. Epochs in which an error was
    raised are not compared.
    """
    run = trials["run"]
    for role in ("again", "reference"):
        if role not in trials:
            continue
        other = trials[role]
        comparable = {epoch.number for epoch in orders.undisturbed(other.ledger)}
        for epoch in orders.undisturbed(run.ledger):
            if epoch.number not in comparable:
                continue
            before, now = orders.by_rank(other.history, epoch.number), orders.by_rank(run.history, epoch.number)
            if orders.alike(before, now):
                continue
            rank, place = _first_difference(before, now)
            one, two = now[rank], before[rank]
            where = "in a second run" if role == "again" else _with(other.spec)
            differ = f"{_differing(one, two)} of {max(len(one), len(two))} places differ"
            yield Violation(
                f"the same seed gives the same order {where}",
                f"{differ} in epoch {_name(run.history, epoch.number)}{_on(rank, run.spec)}: from place {place} on it was "
                f"{_begins(one[place:])}, and {_begins(two[place:])} {where}",
                witnesses=_at(two, one, place),
            )
            break


def _first_difference(one: list[Ids], other: list[Ids]) -> tuple[int, int]:
    """The first rank whose orders differ, and the place from which on they do."""
    for rank, (before, now) in enumerate(zip(one, other, strict=True)):
        if not np.array_equal(before, now):
            shorter = min(len(before), len(now))
            places = np.flatnonzero(before[:shorter] != now[:shorter])
            return rank, int(places[0]) if len(places) else shorter
    return 0, 0


def _differing(one: Ids, other: Ids) -> int:
    shorter = min(len(one), len(other))
    return int(np.count_nonzero(one[:shorter] != other[:shorter])) + max(len(one), len(other)) - shorter


def _at(one: Ids, other: Ids, place: int) -> tuple[int, ...]:
    """The samples at the first place that differs."""
    return tuple(dict.fromkeys(int(ids[place]) for ids in (other, one) if place < len(ids)))


def _on(rank: int, spec: TrialSpec) -> str:
    return f" on rank {rank}" if spec.topology.ranks > 1 else ""


def _with(spec: TrialSpec) -> str:
    return f"with {count(spec.topology.workers, 'worker')}" if spec.topology.workers else "without workers"
