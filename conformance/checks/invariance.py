"""The relation that is the main rule: the number of workers changes nothing but the speed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...harness.contract.job import Contract
from ...harness.faults import Effect
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.spec import TrialSpec
from ..judging.ledger import Epoch, Fate, Mask
from .base import Recorded, Role, Violation, count, relation, spans

_FORGIVEN = (Fate.COLLATERAL, Fate.UNDELIVERED, Fate.IN_DOUBT)
"""What the contract lets a trial lose in one topology need not be lost in another: batches may hold other samples there."""
_OTHERWISE_TREATED = (Effect.CRASH, Effect.STALL, Effect.UNPICKLABLE, Effect.TRANSIENT)
"""Faults that strike a process, a sample that cannot leave its process, and a fault that strikes one read: what becomes of
these samples depends on who reads, as the contract allows."""
_MORE: Mapping[str, Callable[[TrialSpec], tuple[int, ...]]] = {
    "clean": lambda spec: (1, 3),
    "one-bad": lambda spec: (1, 3),
    "tiny": lambda spec: (spec.samples + 1,),
}
"""Scenarios in which further numbers of workers are asked: few, since each is a trial more."""


def _with_workers(spec: TrialSpec, workers: int) -> TrialSpec | None:
    """The same trial with another number of workers; None: the loader does not take that number."""
    supported = spec.contract.workers
    if supported is not None and workers not in supported:
        return None
    topology = dataclasses.replace(
        spec.topology,
        workers=workers,
        start_method=spec.topology.start_method if workers else None,
        persistent=spec.topology.persistent and workers > 0,
    )
    return dataclasses.replace(spec, topology=topology)


def fewest(spec: TrialSpec) -> TrialSpec | None:
    """The same trial without workers, or with the fewest that the loader declares."""
    return _with_workers(spec, min(spec.contract.workers) if spec.contract.workers else 0)


def _further(place: int) -> Callable[[TrialSpec], TrialSpec | None]:
    def of(spec: TrialSpec) -> TrialSpec | None:
        more = _MORE[spec.scenario](spec) if spec.scenario in _MORE else ()
        if place >= len(more) or spec.topology.ranks > 1 or spec.topology.persistent or spec.topology.start_method:
            return None
        return _with_workers(spec, more[place])

    return of


def _asked(spec: TrialSpec) -> bool:
    if spec.topology.workers == 0 or spec.timeout_s > 0:
        return False
    if any(phase.load is not None for phase in spec.phases):
        return False  # a resumed epoch is judged by resume-exact, and may go on with other workers
    return not any(fault.effect in _OTHERWISE_TREATED for fault in spec.plan.values())


def _needs(contract: Contract, spec: TrialSpec) -> str | None:
    if contract.replacement:
        return "samples are drawn with replacement: which of them arrive is not owed"
    return None


@relation(
    "worker-count-invariant",
    title="The number of workers does not change which samples arrive",
    why="A model that was debugged without workers is trained with eight. If the data differ, so does the model, and no loss curve "
    "shows it.",
    source="the main rule: workers and ranks are a performance setting",
    roles=(
        Role("workers", "a trial with workers"),
        Role("reference", "the same trial without workers, or with the fewest that the loader declares", fewest),
        Role("second", "in clean, one-bad and tiny at one rank: with 1 worker, or with more workers than samples", _further(0),
             optional=True),
        Role("third", "in clean and one-bad at one rank: with 3 workers", _further(1), optional=True),
    ),
    exercised=_asked,
    needs=_needs,
    explained_by=(
        "no-lost-batches", "no-duplicates", "content-intact", "oddities-kept", "exact-skip-count", "contract-kept", "error-kept",
        "finite-epoch", "crash-surfaces", "fresh-epoch", "loss-factor", "fields-complete", "no-leftovers", "full-batches",
        "ranks-in-step",
    ),
)  # fmt: skip
def worker_count_invariant(trials: Mapping[str, Recorded]) -> Iterator[Violation]:
    """The samples that arrive, the skips that are reported, and the classes of the errors, epoch by epoch.

    Not compared: what the contract allows one trial to lose (the other samples of a damaged batch, what follows a stop); epochs
    that were left or cut; faults that strike the reading process; jobs with a timeout.
    """
    reference = trials["reference"]
    for role, trial in trials.items():
        if role == "reference":
            continue
        for one, other in zip(reference.ledger.epochs, trial.ledger.epochs, strict=False):
            if one.whole and other.whole:
                yield from _samples(reference, one, trial, other)
                yield from _skips(reference, one, trial, other)
                yield from _errors(reference, one, trial, other)


def _samples(reference: Recorded, one: Epoch, trial: Recorded, other: Epoch) -> Iterator[Violation]:
    compared = _comparable(reference, one) & _comparable(trial, other)
    missing = np.flatnonzero(compared & (one.arrivals > 0) & (other.arrivals == 0))
    further = np.flatnonzero(compared & (one.arrivals == 0) & (other.arrivals > 0))
    dropped = compared & ((one.fate == Fate.DROPPED) | (other.fate == Fate.DROPPED))
    if trial.spec.shuffle and len(missing) == len(further) and dropped[[*missing, *further]].all():
        missing = further = missing[:0]  # as many are left out, and the order decides which
    promised = f"with {_workers(trial)} the samples arrive that arrive {_with(reference)}"
    if len(missing):
        happened = f"{count(len(missing), 'sample')} that arrived {_with(reference)} never arrived"
        if len(further):
            happened += f", and {count(len(further), 'other')} did in their place ({spans(further)})"
        yield Violation(promised, _in(one, happened), lost=tuple(map(int, missing)), witnesses=tuple(map(int, further)))
    elif len(further):
        happened = f"{count(len(further), 'sample')} arrived that did not arrive {_with(reference)}"
        yield Violation(promised, _in(one, happened), witnesses=tuple(map(int, further)))
    elif not trial.spec.plan and compared.all() and one.arrivals.sum() != other.arrivals.sum():
        happened = f"{int(other.arrivals.sum())} samples arrived in all, and {int(one.arrivals.sum())} {_with(reference)}"
        yield Violation(f"with {_workers(trial)} as many samples arrive as {_with(reference)}", _in(one, happened))


def _comparable(trial: Recorded, epoch: Epoch) -> Mask:
    """The samples of which a trial says clearly whether they arrived, and of which it may not lose what another delivers."""
    expected = trial.expected
    known = expected.truth
    left_out = np.isin(epoch.fate, _FORGIVEN) | known.anonymous | epoch.unsure | expected.optional
    # Damage shortens shares, and so decides what is left over; so does a worker that makes batches of its own.
    if trial.spec.plan or expected.contract.short_batches == "per-worker":
        left_out |= epoch.fate == Fate.DROPPED
    either = (expected.owed == Owed.EITHER) & ~known.contested
    compared: Mask = ~(left_out | either)
    return compared


def _skips(reference: Recorded, one: Epoch, trial: Recorded, other: Epoch) -> Iterator[Violation]:
    if sum(one.errors) or sum(other.errors) or one.reported_total is None or other.reported_total is None:
        return  # one error may replace the skips of a whole batch, and which batch that is depends on who reads
    damaged = trial.expected.owed != Owed.GOOD
    differing = np.flatnonzero((one.reported > 0) != (other.reported > 0))
    named = one.reported.any() and other.reported.any()
    if named and len(differing):
        yield Violation(
            f"with {_workers(trial)} the skips are reported that are reported {_with(reference)}",
            _in(one, f"{_ids(other)} were reported, and {_ids(one)} {_with(reference)}"),
            witnesses=tuple(map(int, differing)),
        )
    elif not named and damaged.any() and not trial.expected.pad_budget and one.reported_total != other.reported_total:
        yield Violation(
            f"with {_workers(trial)} as many skips are reported as {_with(reference)}",
            _in(one, f"{count(other.reported_total, 'skip')} reported, and {one.reported_total} {_with(reference)}"),
        )


def _ids(epoch: Epoch) -> str:
    return spans(np.flatnonzero(epoch.reported))


def _errors(reference: Recorded, one: Epoch, trial: Recorded, other: Epoch) -> Iterator[Violation]:
    """Only where each damaged sample had an error of its own, so that the same errors are owed."""
    damaged = int(np.count_nonzero(trial.expected.owed != Owed.GOOD))
    if trial.expected.contract.on_damage != "raise" or {sum(one.errors), sum(other.errors)} != {damaged}:
        return
    before, now = _classes(reference, one), _classes(trial, other)
    for name, bases in now.items():
        if before and not any(name == first or name in kin or first in bases for first, kin in before.items()):
            yield Violation(
                f"with {_workers(trial)} the errors are of the same classes as {_with(reference)}",
                _in(one, f"{_short(name)} reached the consumer, and {', '.join(map(_short, before))} {_with(reference)}"),
                witnesses=tuple(int(sample) for sample in np.flatnonzero(trial.expected.owed != Owed.GOOD)),
            )


def _classes(trial: Recorded, epoch: Epoch) -> dict[str, set[str]]:
    """From the class of each error to all that it is besides: its bases, and the classes of the errors behind it."""
    history = trial.history
    raised = history.of(Kind.RAISED, epoch=epoch.number)
    found: dict[str, set[str]] = {}
    for event in raised[np.isin(raised["flags"], (Where.NEXT, Where.ITER, Where.OUTSIDE))]:
        text = history.texts.get((int(event["pid"]), int(event["aux"])), {})
        name = str(text.get("type", ""))
        behind = [name for name, _ in history.causes(event)]
        found.setdefault(name, set()).update([*text.get("bases", ()), *behind])
    if any("StopIteration" in name for name in {*found, *(kin for bases in found.values() for kin in bases)}):
        return {}  # it cannot leave next() as itself (PEP 479), and from a worker it can
    return {name: kin - _ROOTS for name, kin in found.items()}


_ROOTS = {"builtins.Exception", "builtins.BaseException", "builtins.object"}


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _workers(trial: Recorded) -> str:
    return count(trial.spec.topology.workers, "worker")


def _with(trial: Recorded) -> str:
    return f"with {_workers(trial)}" if trial.spec.topology.workers else "without workers"


def _in(epoch: Epoch, happened: str) -> str:
    return f"{happened} (epoch {epoch.number})" if epoch.number else happened
