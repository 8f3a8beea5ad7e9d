"""Broken promises: failures with the same defect are shown as one, and those to fix first."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Mapping, Sequence

from ...harness.faults import registry as faults
from ...harness.trial import endings
from ..checks.base import count
from ..judging.verdict import CUT_SHORT_BY, Verdict
from .general import general
from .headline import by_trial
from .model import Report
from .places import Column, column_of, in_words

MOST_FIRST = 10
"""Broken promises that "Fix these first" lists at most."""


@dataclasses.dataclass(frozen=True)
class Broken:
    """One broken promise, shown once for all the trials that broke it in the same way."""

    verdict: Verdict
    """The first of them, in the simplest topology; preferably one that fails each time."""
    follows: tuple[str, ...]
    """Checks whose failures in these trials are consequences of this one."""
    members: tuple[str, ...]
    """The ids of the trials in which it failed."""
    lost: int
    """Samples that did not arrive in the trial that lost the most, because of this failure and its consequences."""
    also: tuple[str, ...]
    """Where it failed every time, as ``first-bad, last-bad (everywhere)``; empty if that is only the trial that is
    shown."""
    sometimes: tuple[str, ...]
    """Where it failed in some of the runs, with the rate; empty if that is only the trial that is shown."""

    @property
    def trials(self) -> int:
        """In how many trials it failed."""
        return len(self.members)


@dataclasses.dataclass(frozen=True)
class First:
    """One promise to fix, with all the defects that break it."""

    worst: Broken
    """The defect that loses the most samples, preferably of those that occur in each run."""
    lost: int
    """Samples that did not arrive in the trial that lost the most."""
    trials: int
    others: tuple[str, ...]
    """The diagnoses of the other defects that break the same promise; ``another cause`` for one without a diagnosis."""

    @property
    def extent(self) -> str:
        """``12 samples lost, in 4 trials``; for the trial that lost the most, if there are several."""
        up_to = "up to " if self.trials > 1 else ""
        lost = f"{up_to}{count(self.lost, 'sample')} lost, " if self.lost else ""
        flaky = ", flaky" if self.worst.verdict.flaky is not None else ""
        return f"{lost}in {count(self.trials, 'trial')}{flaky}"

    @property
    def cause(self) -> str:
        """The likely cause if it is known, otherwise what happened; and the other causes."""
        verdict = self.worst.verdict
        said = verdict.diagnosis.text if verdict.diagnosis else verdict.happened
        return f"{said}; also: {', '.join(self.others)}" if self.others else said


def fix_first(broken: Sequence[Broken]) -> tuple[First, ...]:
    """The distinct promises broken, those that lose the most samples first; equal ones stay in their order."""
    by_check: dict[str, list[Broken]] = collections.defaultdict(list)
    for group in broken:
        by_check[group.verdict.check].append(group)
    found = []
    for groups in by_check.values():
        worst = max(groups, key=lambda group: (group.verdict.flaky is None, group.lost, group.trials))
        others = [g.verdict.diagnosis.id if g.verdict.diagnosis else "another cause" for g in groups if g is not worst]
        lost, trials = max(group.lost for group in groups), sum(group.trials for group in groups)
        found.append(First(worst, lost, trials, tuple(dict.fromkeys(others))))
    return tuple(sorted(found, key=lambda first: (-first.lost, -first.trials)))


def broken_promises(report: Report, ran: Mapping[str, set[Column]]) -> tuple[Broken, ...]:
    """Every defect in the failures of a report, the most widespread first.

    Args:
        ran: the columns in which each scenario was run.
    """
    groups: dict[tuple[str, str], list[Verdict]] = collections.defaultdict(list)
    follows: dict[tuple[str, str], dict[str, None]] = collections.defaultdict(dict)
    lost: collections.Counter[tuple[str, str]] = collections.Counter()
    missing = {trial.spec.id: trial.missing for trial in report.trials if trial.ended in endings.HUNG}
    for trial, failures in by_trial(report.verdicts).items():
        gone: dict[tuple[str, str], set[int]] = collections.defaultdict(set)
        for verdict, root in failures:
            gone[_defect(root)].update(verdict.lost)
            if root is verdict:
                groups[_defect(verdict)].append(verdict)
            else:
                follows[_defect(root)][verdict.check] = None
        for defect, samples in gone.items():
            lost[defect] = max(lost[defect], len(samples), missing.get(trial, 0) if defect[0] in CUT_SHORT_BY else 0)
    found = [
        _told_once(members, tuple(sorted(follows[defect])), lost[defect], ran) for defect, members in groups.items()
    ]
    # The most widespread first, and the flaky ones last; equal ones stay in the order of the run.
    return tuple(sorted(found, key=lambda group: (group.verdict.flaky is not None, -group.trials)))


def _told_once(members: Sequence[Verdict], follows: tuple[str, ...], lost: int, ran: Mapping[str, set[Column]]) -> Broken:
    always = [verdict for verdict in members if verdict.flaky is None]
    flaky = [verdict for verdict in members if verdict.flaky is not None]
    first = (always or flaky)[0]
    also = in_words([(v.scenario, column_of(v)) for v in always], ran) if len(always) > 1 else ()
    sometimes: tuple[str, ...] = ()
    if flaky and len(members) > 1:
        times = sum(v.flaky[0] for v in flaky if v.flaky)
        runs = sum(v.flaky[1] for v in flaky if v.flaky)
        sometimes = (*in_words([(v.scenario, column_of(v)) for v in flaky], ran), f"in {times} of {runs} runs")
    return Broken(first, follows, tuple(v.trial for v in members), lost, also, sometimes)


def _defect(verdict: Verdict) -> tuple[str, str]:
    """What two failures with the same defect have in common: the check, and the diagnosis or, without one, what happened.

    Numbers, paths, ids, addresses in memory, the number of the worker or rank, which of several faults with the same effect
    took hold, and how a trial that never ended was cut, differ between trials and are ignored.
    """
    if verdict.diagnosis is not None:
        return verdict.check, verdict.diagnosis.id
    text = _HOW_CUT.sub("", f"{verdict.promised}: {verdict.happened}".partition(" (and ")[0])
    text = _FAULT.sub(lambda match: f"its fault ({_effect(match[1])})", text)
    text = general(text)
    text = re.sub(r"(,? (?:on |of )?rank #)", "", text)
    text = re.sub(r"worker #|the reading process", "it", text)
    text = re.sub(r"\bwere\b", "was", re.sub(r"\bare\b", "is", text))
    # The noun of a number may have an adjective before it; a verb that loses its s does so in both texts.
    return verdict.check, re.sub(r"# (\w+)( \w+)?", lambda match: f"# {_singular(match[1])}{_singular(match[2] or '')}", text)


_HOW_CUT = re.compile(r" \((?:[^()]|\([^()]*\))*\bended (?:at|after)\b[^()]*\)|(?<=process itself died) \([^()]*\)")
_FAULT = re.compile(r"its fault \(([a-z0-9-]+)\)")


def _effect(kind: str) -> str:
    """What a fault of this kind does; the kind itself, where it is not known here."""
    fault = faults().get(kind)
    return kind if fault is None else fault.effect.name.lower().replace("transient", "error")


def _singular(noun: str) -> str:
    return noun.removesuffix("es") if noun.endswith(("ches", "sses")) else noun.removesuffix("s")
