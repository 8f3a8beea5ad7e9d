"""The behaviour card: what a run observed about a loader, before any judgement.

The cost of one bad sample comes first.
"""

from __future__ import annotations

import collections
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ...harness.trial import endings
from ..checks.base import count
from .general import general
from .observations import Fact, rows
from .places import Column, in_words
from .result import TrialResult

K = TypeVar("K")

_MOST = 3  # different behaviours that one line of the card lists


def card(trials: Sequence[TrialResult]) -> tuple[Fact, ...]:
    """The facts that trials show; empty if they contain no observations."""
    ran = [trial for trial in trials if trial.ended != "not run" and trial.observed.effect]
    single = [trial for trial in ran if trial.spec.scenario == "one-bad"]
    errors = [trial for trial in ran if trial.observed.effect == "error"]
    hung = [trial for trial in ran if trial.observed.effect == "stall" and trial.observed.struck]
    died = [trial for trial in ran if trial.observed.effect == "crash" and trial.observed.struck and trial.spec.topology.workers]
    return (
        *_behaviours("bad sample", single),
        *_after(errors),
        *_behaviours("hung read", hung),
        *_behaviours("death", died),
        *_skips(trials),
        *_surfaces(errors),
        *_batches(trials),
        *rows(trials),
    )


def _batches(trials: Sequence[TrialResult]) -> list[Fact]:
    """The consequences if each worker batches its own samples, if the contract says so."""
    short = [trial for trial in trials if trial.observed.worker_tails]
    facts = []
    if short:
        inferred = any("short_batches" in trial.spec.contract.inferred for trial in short)
        how = 'not declared: @loader(short_batches="per-worker")' if inferred else "as declared"
        most = max(trial.observed.worker_tails for trial in short)
        facts.append(Fact("batches", f"each worker ends with a short batch of its own, {how}; up to {most} before a rank's last one"))
    dropped = [trial for trial in trials if trial.observed.left_out]
    for number, some in _grouped(dropped, lambda trial: trial.observed.left_out):
        text = f"drop_last leaves out {count(number, 'good sample')}, the partial batches of all workers"
        facts.append(Fact("batches", text, _places(some, [trial for trial in trials if trial.spec.drop_last])))
    return facts


def _behaviours(topic: str, trials: Sequence[TrialResult]) -> list[Fact]:
    """What happened, with its cost; trials in which the same happened are grouped, the largest group first."""
    groups = _grouped(trials, lambda trial: (_outcome(trial), trial.missing))
    if len(groups) > _MOST:  # then the cost is given as a range
        groups = _grouped(trials, lambda trial: (_outcome(trial), 0))
    facts = [Fact(topic, _told(what, some), _places(some, trials)) for (what, _), some in groups[:_MOST]]
    if len(groups) > _MOST:
        rest = sum(len(some) for _, some in groups[_MOST:])
        facts.append(Fact(topic, f"something else in {count(rest, 'trial')}"))
    return facts


def _outcome(trial: TrialResult) -> str:
    seen = trial.observed
    if seen.errors:
        return f"an error, then {_THEN[seen.after]}"
    if trial.ended in endings.HUNG:
        return "no error; next() never returns"
    if trial.ended.startswith(("killed", "exit", "rank")):
        return f"the consumer's process dies ({trial.ended})"
    if trial.skipped:
        return "no error; a skip is reported"
    return "no error and no reported skip"


_THEN = {
    "waits": "next() never returns",
    "repeats": "the same error again and again",
    "ends": "the end of the epoch",
    "goes on": "the epoch goes on",
}


def _told(what: str, trials: Sequence[TrialResult]) -> str:
    """``1 error after 1.0 to 1.2 s, then the epoch goes on; 3 of 39 good samples do not arrive``."""
    seconds = [trial.observed.surfaced_s for trial in trials if trial.observed.surfaced_s is not None]
    when = f" after {_span(seconds)} s" if seconds and max(seconds) >= _WORTH_SAYING_S else ""
    errors = [trial.observed.errors for trial in trials]
    number = f"{_whole(errors)} error{'s' * (max(errors) != 1)}"
    head, comma, then = what.replace("an error", number).partition(",") if min(errors) else (what, "", "")
    missing = [trial.missing for trial in trials]
    expected = [trial.arrivals_expected for trial in trials]
    verb = "does" if set(missing) == {1} else "do"
    lost = f"{_whole(missing)} of {_whole(expected)} good samples {verb} not arrive" if any(missing) else "every good sample arrives"
    return f"{head}{when}{comma}{then}; {lost}"


_WORTH_SAYING_S = 0.5  # below it the machine, and not the loader, determines the delay of an error


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _whole(values: Sequence[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _after(trials: Sequence[TrialResult]) -> list[Fact]:
    """Over all scenarios in which a read raises: what happens after the first error."""
    raising = [trial for trial in trials if trial.observed.after]
    groups = _grouped(raising, lambda trial: _THEN[trial.observed.after])
    if not groups:
        return []
    listed = "; ".join(f"{what} (in {count(len(some), 'trial')})" for what, some in groups)
    return [Fact("errors", f"after the first error {listed}")]


def _skips(trials: Sequence[TrialResult]) -> list[Fact]:
    """Whether skips are counted, and with which reasons."""
    reported = sum(trial.skipped for trial in trials)
    silent = [trial for trial in trials if trial.observed.silent]
    if not reported and not silent:
        return []
    parts = [f"{count(reported, 'skip')} reported" if reported else "none reported"]
    if silent:
        number = sum(trial.observed.silent for trial in silent)
        parts.append(f"{count(number, 'damaged sample')} left out without a report (in {count(len(silent), 'trial')})")
    reasons: collections.Counter[str] = collections.Counter()
    for trial in trials:
        for reason, times in trial.observed.reasons.items():
            reasons[general(reason)] += times
    empty = sum(trial.observed.without_reason for trial in trials)
    if reasons:
        most = "; ".join(f"{reason} ({times})" for reason, times in reasons.most_common(_MOST))
        parts.append(f"reasons: {most}" + ("; …" if len(reasons) > _MOST else ""))
    elif reported and not empty:
        parts.append("no reasons given")
    if empty:
        parts.append(f"{count(empty, 'skip')} with an empty reason")
    return [Fact("skips", ", ".join(parts))]


def _surfaces(trials: Sequence[TrialResult]) -> list[Fact]:
    seconds = [trial.observed.surfaced_s for trial in trials if trial.observed.surfaced_s is not None]
    if not seconds:
        return []
    median = statistics.median(seconds)
    text = f"an error or a skip reaches the consumer {median:.2f} s after the fault (median), {max(seconds):.2f} s at most"
    return [Fact("delay", text)]


def _grouped(trials: Iterable[TrialResult], key: Callable[[TrialResult], K]) -> list[tuple[K, list[TrialResult]]]:
    groups: dict[K, list[TrialResult]] = collections.defaultdict(list)
    for trial in trials:
        groups[key(trial)].append(trial)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _places(some: Sequence[TrialResult], trials: Sequence[TrialResult]) -> tuple[str, ...]:
    if len(some) == len(trials):
        return ()
    ran: Mapping[str, set[Column]] = collections.defaultdict(set)
    for trial in trials:
        ran[trial.spec.scenario].add(Column(trial.spec.source, trial.spec.topology))
    found = in_words([(trial.spec.scenario, Column(trial.spec.source, trial.spec.topology)) for trial in some], ran)
    if len(ran) == 1:  # the topic is about this one scenario: its name adds nothing
        (scenario,) = ran
        return tuple(place.removeprefix(f"{scenario} (").removesuffix(")") for place in found)
    return found
