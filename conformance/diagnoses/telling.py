"""Diagnoses of skips that are not counted, substitutes that are not reported, and errors that arrive changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...harness.corpus.damage.oddities import PictureOddity
from ...harness.faults import Effect
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind
from ..checks.base import count, spans, was
from ..judging.ledger import Fate
from ..judging.raised import quoted
from .base import diagnosis
from .case import Case, Ids


def _gone(case: Case) -> Ids:
    """The damaged samples whose fault took effect and that did not arrive, reported by no error."""
    epoch = case.epoch
    gone = (case.expected.owed != Owed.GOOD) & (epoch.arrivals == 0) & np.isin(
        epoch.fate, (Fate.LOST, Fate.SKIPPED, Fate.SUBSTITUTED)
    )
    found: Ids = np.flatnonzero(gone & case.mask(case.faults["sample"]))
    return found


@diagnosis(
    "substituted-silently",
    cause="A good sample arrives again in the place of a damaged one, and nothing says so.",
    fix="Report each substitution by job.on_skip or loader.skipped, and declare it with on_damage=\"substitute\".",
    explains=("exact-skip-count", "no-duplicates", "contract-kept", "no-lost-batches", "fresh-epoch"),
    before=("oddity-taken-for-missing",),
)
def substituted_silently(case: Case) -> str | None:
    epoch = case.epoch
    gone = _gone(case)
    extra = int(epoch.extra.sum()) - case.expected.pad_budget
    if not len(gone) or not 0 < extra <= len(gone) or epoch.reported_total:
        return None
    twice = np.flatnonzero(epoch.extra)
    return (
        f"{count(len(gone), 'damaged sample')} ({spans(gone)}) did not come, {count(len(twice), 'good sample')} "
        f"({spans(twice)}) came again, and nothing was reported"
    )


@diagnosis(
    "skip-counter-in-worker",
    cause="The skips are counted in a worker's copy of the loader or the data set, and read in the consumer's process.",
    fix="Call job.on_skip, which works in any process, or send the count along with each batch.",
    explains=("exact-skip-count",),
    before=("skips-not-counted",),
)
def skip_counter_in_worker(case: Case) -> str | None:
    gone = _gone(case)
    entries = case.history.of(Kind.REPORTED, epoch=case.epoch.number)
    faults = case.faults[np.isin(case.faults["sample"], gone)]
    if not len(gone) or not len(entries) or len(case.history.of(Kind.SKIPPED)) or not case.in_worker(faults).any():
        return None
    in_workers = np.unique(faults[case.in_worker(faults)]["sample"])
    counted = case.epoch.reported_total or 0
    if counted > len(gone) - len(in_workers):
        return None
    return (
        f"{count(len(in_workers), 'sample')} ({spans(in_workers)}) {was(len(in_workers))} skipped in {case.reader(faults[0])}, and "
        f"loader.skipped says {counted}"
    )


@diagnosis(
    "skips-not-counted",
    cause="A damaged sample is left out without being counted.",
    fix="Report each skip by job.on_skip(sample, reason), where it is decided.",
    explains=("exact-skip-count", "contract-kept"),
)
def skips_not_counted(case: Case) -> str | None:
    gone = _gone(case)
    counted = case.epoch.reported_total
    if not len(gone) or (counted or 0) >= len(gone) or any(case.epoch.errors) or case.lost.any():
        return None
    said = "nothing was reported" if counted is None else f"{count(counted, 'skip')} {was(counted)} reported"
    return f"{count(len(gone), 'sample')} ({spans(gone)}) {was(len(gone))} left out, and {said}"


@diagnosis(
    "oddity-taken-for-missing",
    cause="A legal but odd value is treated as missing.",
    fix="Compare with None, and not by truth value, length or NaN.",
    explains=("oddities-kept", "exact-skip-count"),
    before=("skips-not-counted",),
)
def oddity_taken_for_missing(case: Case) -> str | None:
    fates = (Fate.LOST, Fate.SKIPPED, Fate.MARKED)
    odd = np.flatnonzero(case.expected.odd & np.isin(case.epoch.fate, fates))
    plan = case.spec.plan
    if not len(odd) or any(case.epoch.errors) or any(isinstance(plan[int(sample)], PictureOddity) for sample in odd):
        return None  # an odd picture is not compared with None
    kind = plan[int(odd[0])].kind
    return f"{count(len(odd), 'good sample')} ({spans(odd)}) with the oddity {kind} did not arrive as good"


def _came_out_as(case: Case) -> Iterator[tuple[np.void, str, np.void]]:
    """Where an error came out with another class: the fault, the class of the source's error, and the error that came."""
    for fault in case.struck(Effect.ERROR, Effect.TRANSIENT):
        raised = case.raised(int(fault["rank"]))
        done = case.done[(case.done["sample"] == fault["sample"]) & (case.done["flags"] == 1)]
        after = raised[raised["time"] >= fault["time"]]
        if not len(after) or not len(done):
            continue
        source = case.history.text(done[0], "type")
        came = case.history.texts.get((int(after[0]["pid"]), int(after[0]["aux"])), {})
        if source and source not in came.get("bases", [source]):
            yield fault, source, after[0]


@diagnosis(
    "error-replaced",
    cause="The loader catches the error, and raises one of another class in its place.",
    fix="Raise the error itself (a bare raise, or add_note() to add to its message), or an error of a class that inherits from its own.",
    explains=("error-kept",),
    before=("class-lost-in-transit",),
)
def error_replaced(case: Case) -> str | None:
    for fault, source, came in _came_out_as(case):
        behind = [kind for kind, _ in case.history.causes(came)]
        if source in behind or not case.in_worker(np.array([fault]))[0]:
            return f"sample {fault['sample']} raised {_short(source)}, and the loader raised {quoted(case.history, came)}"
    return None


@diagnosis(
    "class-lost-in-transit",
    cause="The error is built again from its message when it leaves the worker, and its class does not allow that.",
    fix="Send the error itself where it can be pickled, and raise it as the cause of one that names it where it cannot.",
    explains=("error-kept",),
    of_workers=True,
)
def class_lost_in_transit(case: Case) -> str | None:
    for fault, source, came in _came_out_as(case):
        if case.in_worker(np.array([fault]))[0]:
            got = _short(case.history.text(came, "type"))
            return f"{case.reader(fault)} raised {_short(source)} in sample {fault['sample']}, and the consumer got {got}"
    return None


def _short(name: str) -> str:
    return name.rpartition(".")[2]
