"""The check on states: a loader that is resumed goes on with what had not arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...harness.contract.job import Contract
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.phases import Batches, Phase, Save
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger
from ..judging.raised import quoted
from ..judging.refused import may_refuse, moved, refusals
from .base import Violation, check, count


def _needs_a_state(contract: Contract, spec: TrialSpec) -> str | None:
    return "the loader has no state" if contract.resume == "none" else None


@check(
    "resume-exact",
    title="A resumed epoch is whole",
    why="A job that is preempted and resumed trains on some samples twice and on others never, and nothing shows it.",
    source="torchdata, StatefulDataLoader: state_dict() and load_state_dict(); DESIGN of badbatch",
    exercised=lambda spec: any(isinstance(phase.then, Save) for phase in spec.phases),
    needs=_needs_a_state,
    # The epoch in which the state was taken is the first one, and the account of all others.
    implies=("no-duplicates", "no-lost-batches", "finite-epoch", "honest-length", "exact-skip-count", "full-batches", "ranks-in-step"),
)
def resume_exact(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Each good sample once before and after the stop, and in each later epoch. Refused states are errors, and only where they may be."""
    refused = refusals(history)
    for phase, why in refused.items():
        if why and not may_refuse(expected, phase):
            yield Violation("a state is loaded in the topology in which it was saved", f"{_where(history, phase)}: {why}")
    yield from _not_saved(history, refused)
    for number, segments in enumerate(history.logical_epochs):
        last, epoch = segments[-1]
        saves = any(isinstance(history.spec.phases[phase].then, Save) for phase, _ in segments)
        if last in refused or not (saves or history.spec.phases[last].load is not None):
            continue
        yield from _not_whole(history, ledger.epochs[number], expected, last, epoch)


def _not_saved(history: History, refused: Mapping[int, str]) -> Iterator[Violation]:
    for event in history.of(Kind.RAISED):
        if event["flags"] == Where.SAVE and int(event["phase"]) not in refused:
            yield Violation(
                "state_dict() gives a state between two calls of next()",
                f"{_taken(history.spec.phases[int(event['phase'])])} it raised {quoted(history, event)}",
            )


def _not_whole(history: History, epoch: Epoch, expected: Expectation, last: int, number: int) -> Iterator[Violation]:
    lost = [int(sample) for sample in epoch.having(Fate.LOST, Fate.UNDELIVERED) if expected.owed[sample] == Owed.GOOD]
    twice = [int(sample) for sample in epoch.having(Fate.DUPLICATED)]
    if not lost and not twice:
        return
    happened = [f"{count(len(twice), 'sample')} came twice"] * bool(twice) + [f"{count(len(lost), 'sample')} never came"] * bool(lost)
    phase = history.spec.phases[last]
    if phase.load is None:
        promised = "asking for the state changes nothing"
    elif number > phase.first_epoch or not history.spec.phases[phase.load].stops_early:
        promised = "the epochs after a resume are whole"
    else:
        promised = "a resumed epoch goes on with what had not arrived"
    yield Violation(promised, f"{_where(history, last)}, epoch {number}: {' and '.join(happened)}", tuple(lost), tuple(twice))


def _where(history: History, number: int) -> str:
    """What a phase did, in words: ``state taken after 2 batches, loaded with workers=3``."""
    spec = history.spec
    load = spec.phases[number].load
    if load is None:
        return "the process in which the states were taken"
    now = spec.in_phase(number).topology
    loaded = f", loaded on {count(now.ranks, 'rank')} with {count(now.workers, 'worker')}" if moved(spec, number) else ""
    return f"state {_taken(spec.phases[load])}{loaded}"


def _taken(phase: Phase) -> str:
    if not isinstance(phase.until, Batches):
        return f"taken at the end of epoch {phase.last_epoch}"
    steps = count(phase.until.n, "batch")
    return f"taken after {steps} of epoch {phase.last_epoch}" if phase.until.n else f"taken before epoch {phase.last_epoch}"
