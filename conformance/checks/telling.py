"""Checks on how damage is reported: skips are counted, and damage is treated as promised."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...harness.contract.job import Contract
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger
from ..judging.raised import quoted
from ..judging.refused import errors_of_refusals
from ..judging.stops import went_on
from .base import Violation, check, count, spans, was

_RAISING = "the loader promises to raise: it has no skips to count"


def _skips(contract: Contract, spec: TrialSpec) -> str | None:
    if contract.on_damage == "raise":
        return _RAISING
    if contract.on_damage == "mark":
        return "the loader marks what is damaged: it has no skips to count"
    return None


@check(
    "exact-skip-count",
    title="What is reported as skipped is what was damaged",
    why="A silent skip trains a model on part of its data; a wrong count hides how large that part is.",
    source="DESIGN of badbatch: silence about a skip is a failure; torchdata and webdataset handlers skip silently",
    needs=_skips,
)
def exact_skip_count(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """The count, and the ids if the loader gives them, in every epoch."""
    for epoch in ledger.epochs:
        yield from _count_of(history, epoch, expected)


def _count_of(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    not_good = expected.owed != Owed.GOOD
    unknown = (expected.absent | expected.optional) & (epoch.fate == Fate.LOST)  # a loader may not have known of it
    gone = np.flatnonzero(not_good & ~unknown & np.isin(epoch.fate, (Fate.LOST, Fate.SKIPPED, Fate.SUBSTITUTED)))
    owed = len(np.unique(expected.unit[gone]))
    if not expected.goes_on or not epoch.whole:
        return  # what was not reached cannot be counted
    if epoch.reported_total is None:
        if owed:
            yield Violation(
                f"every skip is reported: {_with_samples(count(owed, 'skip'), owed, gone)}",
                "nothing was reported, by on_skip or by loader.skipped",
                witnesses=tuple(int(s) for s in gone),
            )
        return
    optional = int(np.count_nonzero(expected.lethal | (expected.owed == Owed.EITHER))) + expected.pad_budget + len(gone) - owed
    if expected.contract.replacement:  # one sample may be drawn, and skipped, several times
        optional += expected.spec.samples
    named = epoch.reported > 0
    # Good samples that were skipped are a violation of another check, odd ones of a third.
    strangers = np.flatnonzero(named & ~not_good & ~expected.odd & (epoch.arrivals > 0))
    silent = np.flatnonzero(not_good & ~unknown & (epoch.fate == Fate.LOST))
    wrongly = int(np.count_nonzero(named & ~not_good & (epoch.arrivals == 0))) + int(epoch.reported[expected.odd].sum())
    total = epoch.reported_total - wrongly
    if others := len(strangers) + epoch.reported_strangers:
        yield Violation(
            "only samples that were skipped are reported",
            f"{count(others, 'sample')} {was(others)} reported as skipped and not skipped",
            witnesses=tuple(int(s) for s in strangers),
        )
    elif len(silent) or not owed <= total <= owed + optional:
        yield Violation(
            _owed_reports(owed, gone),
            f"{count(epoch.reported_total, 'skip')} reported",
            witnesses=tuple(int(s) for s in (silent if len(silent) else gone)),
        )


def _owed_reports(owed: int, gone: np.ndarray) -> str:
    return f"{_with_samples(count(owed, 'skip') + ' reported', owed, gone)}" if owed else "no skip reported"


def _with_samples(text: str, owed: int, gone: np.ndarray) -> str:
    """A number of skips with the samples; if one fault cost several samples, which can only be reported together, it says so."""
    if owed == len(gone):
        return f"{text} ({spans(gone)})"
    return f"{text}, at least one for each fault ({spans(gone)}: {count(len(gone), 'sample')} of {count(owed, 'fault')})"


@check(
    "contract-kept",
    title="Damage is treated as promised, in every topology",
    why="A policy that works with 0 workers and breaks with 2 is only noticed in production, at full scale.",
    source="the main rule: workers and ranks are a performance setting",
    implies=("ranks-in-step", "exact-skip-count", "error-kept", "error-names-sample", "full-batches"),
)
def contract_kept(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """The observed policy is the one declared, or inferred at zero workers and one rank."""
    yield from _cannot_be_built(history, bool(np.any(expected.owed != Owed.GOOD)))
    for epoch in ledger.epochs:
        errors = sum(epoch.errors) - errors_of_refusals(history, epoch.number)
        damage = bool(np.any(expected.owed != Owed.GOOD))
        if errors > expected.error_budget and (not damage or expected.goes_on):
            yield _too_many(history, epoch, expected, errors)
        yield from _POLICY[expected.contract.on_damage or "raise"](history, epoch, expected)


def _cannot_be_built(history: History, damaged: bool) -> Iterator[Violation]:
    """An error outside of the epoch. If something is damaged, an error in building counts as one of the epoch."""
    outside = (Where.LENGTH, Where.CLOSE, Where.REPORT) if damaged else (Where.FACTORY, Where.LENGTH, Where.CLOSE, Where.REPORT)
    failed = history.of(Kind.RAISED)
    failed = failed[np.isin(failed["flags"], outside)]
    if len(failed):
        where = {Where.FACTORY: "building it", Where.LENGTH: "len()", Where.CLOSE: "closing it", Where.REPORT: "skipped"}
        yield Violation(
            "the loader can be built, iterated and closed in every topology",
            f"{where[Where(int(failed[0]['flags']))]} raised {quoted(history, failed[0])}",
        )


def _too_many(history: History, epoch: Epoch, expected: Expectation, errors: int) -> Violation:
    first = history.of(Kind.RAISED, epoch=epoch.number)[0]
    if not np.any(expected.owed != Owed.GOOD):
        return Violation("no error where nothing is damaged", f"the consumer got {quoted(history, first)}")
    if expected.contract.on_damage != "raise":
        return Violation(
            f"a damaged sample is {_PARTICIPLE[expected.contract.on_damage or 'skip']}",
            f"{count(errors, 'error')} reached the consumer: {quoted(history, first)}",
        )
    return Violation(
        f"an error surfaces once for each damaged batch: at most {expected.error_budget}",
        f"{count(errors, 'error')} reached the consumer, the first: {quoted(history, first)}",
    )


_PARTICIPLE = {"skip": "skipped", "substitute": "substituted", "mark": "marked"}


def _raise(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    errors = sum(epoch.errors)
    if not expected.goes_on and not expected.stop_is_inferred:
        yield from _half_way(history, epoch)
    if not epoch.whole:
        return
    swallowed = [int(s) for s in np.flatnonzero(expected.damaged & np.isin(epoch.fate, (Fate.LOST, Fate.SKIPPED, Fate.MARKED)))]
    if swallowed and (expected.goes_on or not errors):
        fates = sorted({Fate(int(epoch.fate[s])).name.lower() for s in swallowed})
        how = {"lost": "vanished without an error", "skipped": "skipped", "marked": "marked as missing"}
        yield Violation(
            "each damaged sample is reported by an error",
            f"{count(len(swallowed), 'damaged sample')} {' or '.join(how[fate] for fate in fates)}"
            + ("" if errors else "; no error reached the consumer"),
            witnesses=tuple(swallowed),
        )


def _half_way(history: History, epoch: Epoch) -> Iterator[Violation]:
    for rank in range(history.spec.most_ranks):
        after = went_on(history, epoch.number, rank)
        if after:
            yield Violation(
                "after an error the iterator is finished, or keeps failing",
                f"{count(after, 'batch')} came after the error",
            )


def _skip(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    marked = np.flatnonzero(expected.damaged & (epoch.marked > 0))
    if len(marked) or epoch.unnamed:
        yield Violation(
            "a damaged sample is skipped",
            f"{count(max(len(marked), epoch.unnamed), 'sample')} arrived marked as missing",
            witnesses=tuple(int(s) for s in marked),
        )


def _substitute(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    if not epoch.whole or expected.spec.drop_last or not expected.spec.plan:
        return
    wanted = expected.spec.samples - expected.drop_budget
    came = int(epoch.arrivals.sum())
    told = sum(epoch.errors)
    spare = told * expected.spec.batch_size + int(np.count_nonzero(expected.lethal))
    if expected.good.any() and came < wanted - spare and not np.any((epoch.fate == Fate.LOST) & expected.good):
        yield Violation("as many samples as ever arrive", f"{came} of {wanted} arrived")


def _mark(history: History, epoch: Epoch, expected: Expectation) -> Iterator[Violation]:
    if not epoch.whole:
        return
    gone = np.flatnonzero(expected.damaged & ~expected.lethal & np.isin(epoch.fate, (Fate.LOST, Fate.SKIPPED)))
    if len(gone):
        yield Violation(
            "a damaged sample arrives, marked",
            f"{count(len(gone), 'damaged sample')} did not arrive",
            witnesses=tuple(int(s) for s in gone),
        )


_POLICY = {"raise": _raise, "skip": _skip, "substitute": _substitute, "mark": _mark}
