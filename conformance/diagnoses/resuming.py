"""Diagnoses of loaders that go on from a state, but not with what is missing."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind
from ...harness.trial.phases import Phase
from ..checks.base import count, spans, was
from .base import diagnosis
from .case import Case, Ids


def _number(case: Case) -> int:
    """The number of the last phase of the epoch in question."""
    return case.history.logical_epochs[case.epoch.number][-1][0]


def _resumed(case: Case) -> Phase | None:
    """The last phase of the epoch in question, where it loaded a state."""
    phase = case.spec.phases[_number(case)]
    return None if phase.load is None or _number(case) in case.refusals else phase


def _goes_on(case: Case) -> bool:
    """Whether the epoch in question spans a resume."""
    return _resumed(case) is not None and len(case.history.logical_epochs[case.epoch.number]) > 1


def _before(case: Case, kind: Kind) -> Ids:
    """The samples of the events of a kind that came before the state was taken from which the epoch in question goes on."""
    phase = _resumed(case)
    saved = case.history.of(Kind.SAVED)
    taken = saved["time"][saved["phase"] == phase.load] if phase is not None else saved["time"][:0]
    found = case.history.of(kind)
    samples: Ids = found["sample"][found["time"] < (taken.max() if len(taken) else 0)]
    return samples


def _lost(case: Case) -> Ids:
    found: Ids = np.flatnonzero(case.never_came(case.epoch))
    return found


def _twice(case: Case) -> Ids:
    found: Ids = np.flatnonzero(case.epoch.arrivals > 1)
    return found


def _wrong(case: Case) -> str:
    found = ((_twice(case), "came twice"), (_lost(case), "never came"))
    return " and ".join(f"{count(len(samples), 'sample')} ({spans(samples)}) {what}" for samples, what in found if len(samples))


@diagnosis(
    "state-has-an-effect",
    cause="Asking for the state changes what the iterator gives next.",
    fix="Let state_dict() only read: copy the position, and take nothing from an iterator or a queue.",
    explains=("resume-exact",),
    before=("state-counts-what-was-read", "state-not-used", "order-not-restored", "later-epochs-begin-at-the-state"),
)
def state_has_an_effect(case: Case) -> str | None:
    if case.spec.phases[_number(case)].load is not None or not len(case.history.of(Kind.SAVED)):
        return None
    changed = np.concatenate([_lost(case), _twice(case)])
    return f"without a resume, {count(len(changed), 'sample')} ({spans(changed)}) came twice or never" if len(changed) else None


@diagnosis(
    "state-of-other-ranks",
    cause="The state of another number of ranks is taken, although each rank has other samples now.",
    fix="Store the number of ranks in the state, and refuse another one with an error; or store positions of the whole set.",
    explains=("resume-exact",),
    before=("state-counts-what-was-read", "state-not-used", "order-not-restored"),
)
def state_of_other_ranks(case: Case) -> str | None:
    phase = _resumed(case)
    if phase is None or phase.load is None or phase.topology is None:
        return None
    saved, loaded = case.spec.in_phase(phase.load).topology.ranks, phase.topology.ranks
    if saved == loaded:
        return None
    return f"a state of {count(saved, 'rank')} was loaded by {loaded}: {_wrong(case)}"


@diagnosis(
    "resume-reads-again",
    cause="To reach its position the loader reads again what it has delivered, and a damaged sample ends the resume.",
    fix="Skip samples without reading them, or ignore the errors of samples that were passed before the state was taken.",
    explains=("resume-exact",),
    before=("state-has-an-effect", "state-counts-what-was-read"),
)
def resume_reads_again(case: Case) -> str | None:
    number = _number(case)
    load = case.spec.phases[number].load
    if number not in case.refusals or load is None:
        return None
    faults, saved = case.history.of(Kind.FAULT), case.history.of(Kind.SAVED)
    taken = saved["time"][saved["phase"] == load]
    if not len(taken):
        return None
    before = np.unique(faults["sample"][faults["time"] < taken.max()])
    again = np.unique(faults["sample"][(faults["phase"] == number) & np.isin(faults["sample"], before)])
    if not len(again):
        return None
    return (
        f"{count(len(again), 'damaged sample')} ({spans(again)}), passed before the state was taken, "
        f"{was(len(again))} read again on the resume, and the error ended it"
    )


@diagnosis(
    "state-after-a-resume",
    cause="A state that is taken after a resume is wrong, though the resume itself went on where it should.",
    fix="Count on from the position that was loaded, and count each batch once.",
    explains=("resume-exact",),
    before=("state-counts-what-was-read", "order-not-restored"),
)
def state_after_a_resume(case: Case) -> str | None:
    phase = _resumed(case)
    if phase is None or phase.load is None or case.spec.phases[phase.load].load is None or not _goes_on(case):
        return None
    arrived = case.history.of(Kind.ARRIVED)
    before, between = (arrived["sample"][arrived["phase"] == n] for n in (case.spec.phases[phase.load].load, phase.load))
    if np.isin(between, before).any():
        return None
    return f"the first resume went on where it should; after a second one, from a state taken after the first, {_wrong(case)}"


@diagnosis(
    "state-not-used",
    cause="The state is taken and not used: the epoch starts again.",
    fix="Skip in the next __iter__() what the state says was delivered.",
    explains=("resume-exact",),
    before=("order-not-restored",),
)
def state_not_used(case: Case) -> str | None:
    delivered = np.unique(_before(case, Kind.ARRIVED))
    if not _goes_on(case) or len(_lost(case)) or not len(delivered) or not np.isin(delivered, _twice(case)).all():
        return None
    return f"all {count(len(delivered), 'sample')} that had arrived before the stop came again"


@diagnosis(
    "state-counts-what-was-read",
    cause="The state says how far the workers have read, and not how far the consumer has come.",
    fix="Store the number of batches that next() returned; what was read ahead is read again after a resume.",
    explains=("resume-exact",),
    before=("order-not-restored",),
)
def state_counts_what_was_read(case: Case) -> str | None:
    lost = _lost(case)
    if not _goes_on(case) or not len(lost) or len(_twice(case)):
        return None
    read = np.isin(lost, _before(case, Kind.READ))
    if np.count_nonzero(read) < 0.5 * len(lost):
        return None
    return f"{np.count_nonzero(read)} of the {len(lost)} samples that never came had been read ahead when the state was taken"


@diagnosis(
    "order-not-restored",
    cause="The resumed epoch goes on at the right position of another order.",
    fix="Store the seed or the permutation of the epoch in the state.",
    explains=("resume-exact",),
)
def order_not_restored(case: Case) -> str | None:
    lost, twice = _lost(case), _twice(case)
    if not _goes_on(case) or not len(lost) or not len(twice):
        return None
    return f"after the resume {count(len(twice), 'sample')} came again and {len(lost)} never, as if the epoch had been shuffled again"


@diagnosis(
    "later-epochs-begin-at-the-state",
    cause="The position of the state is used again in the epochs after the resumed one.",
    fix="Use the position once: the next epoch begins at the start.",
    explains=("resume-exact",),
)
def later_epochs_begin_at_the_state(case: Case) -> str | None:
    if _resumed(case) is None or _goes_on(case) or not len(_lost(case)):
        return None
    lacking = f"{count(len(_lost(case)), 'sample')} ({spans(_lost(case))})"
    return f"epoch {case.history.logical_epochs[case.epoch.number][-1][1]}, after the resume, lacks {lacking}"
