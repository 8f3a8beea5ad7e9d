"""The result of a run in one line, and its first failures: used in every printed report."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from ..judging.verdict import Mark, Verdict
from .printable import printable

_TOTALS = {
    "fail": "failed",
    "inconclusive": "inconclusive",
    "pass": "passed",
    "n/a": "not applicable",
    "known": "known",
    "flaky": "flaky",
}
_FIRST = 5  # failures that a summary shows
_REPR = 240  # letters: pytest cuts a longer repr in the middle


def by_trial(verdicts: Sequence[Verdict]) -> dict[str, list[tuple[Verdict, Verdict]]]:
    """The failures of each trial, each with the failure that explains it: itself if nothing else does."""
    failed = {(verdict.trial, verdict.check): verdict for verdict in verdicts if verdict.mark is Mark.FAIL}
    found: dict[str, list[tuple[Verdict, Verdict]]] = collections.defaultdict(list)
    for (trial, _), verdict in failed.items():
        found[trial].append((verdict, _root(verdict, failed)))
    return dict(found)


def _root(verdict: Verdict, failed: Mapping[tuple[str, str], Verdict]) -> Verdict:
    """The failure that explains this one; itself if the cause did not fail, is known, or is itself explained by this one."""
    root, seen = verdict, {(verdict.trial, verdict.check)}
    while (behind := (root.cause_in or root.trial, root.cause)) in failed:
        root = failed[behind]
        if behind in seen:
            return verdict
        seen.add(behind)
    return root


def conclusion(verdicts: Sequence[Verdict], summary: Mapping[str, int], stale_known: Sequence[str]) -> str:
    """Whether the loader kept its promises, in a few words.

    Args:
        summary: the number of verdicts of each kind.
        stale_known: entries of known files that no longer fit.
    """
    if not verdicts:
        return "nothing was run"
    failures = by_trial(verdicts)
    if failures:
        checks = len({root.check for several in failures.values() for _, root in several})
        ran = len({v.trial for v in verdicts if v.mark is not Mark.NA})
        return f"{checks} promise{'s' * (checks != 1)} broken, in {len(failures)} of {ran} trials"
    if stale_known:
        return "no promise broken, but a known file no longer fits"
    if summary["inconclusive"]:
        return "no promise broken, but some verdicts are inconclusive"
    if not summary["pass"] + summary["known"]:
        return "nothing could be tried"
    return "every promise kept" + (", but for known failures" if summary["known"] else "")


def totals(summary: Mapping[str, int]) -> str:
    """``10 failed, 2 inconclusive, 7 passed``."""
    return ", ".join(f"{summary[kind]} {word}" for kind, word in _TOTALS.items() if summary[kind] or kind == "pass")


def _first_of_each(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The first failure of each check that is not a consequence of another, in the order of the run."""
    found: dict[str, Verdict] = {}
    for several in by_trial(verdicts).values():
        for verdict, root in several:
            if verdict is root:
                found.setdefault(verdict.check, verdict)
    return list(found.values())


def first_failures(verdicts: Sequence[Verdict], stale_known: Sequence[str]) -> list[str]:
    """The first failure of each broken promise, a few lines each, at most five; then the number of other failures."""
    lines: list[str] = []
    shown = _first_of_each(verdicts)[:_FIRST]
    number = sum(verdict.mark is Mark.FAIL for verdict in verdicts)
    for verdict in shown:
        lines.append(f"FAIL {printable(verdict.trial)} {verdict.check}")
        parts = (("promised", verdict.promised), ("happened", verdict.happened), ("raised", verdict.error), ("again", verdict.replay))
        lines += [f"  {label:9}{printable(text)}" for label, text in parts if text]
    if number > len(shown):
        lines.append(f"and {number - len(shown)} more failed")
    return lines + [f"FAIL {printable(entry)}" for entry in stale_known]


def short(loader: str, verdicts: Sequence[Verdict], summary: Mapping[str, int], stale_known: Sequence[str]) -> str:
    """One line for a debugger or a failed assertion: the totals and as many names of failures as fit."""
    text = f"<Report on {printable(loader)[:80]}: {totals(summary)}"
    names = [f"{printable(verdict.trial)} {verdict.check}" for verdict in _first_of_each(verdicts)]
    names += [printable(entry) for entry in stale_known]
    for number, name in enumerate(names):
        lead = "; first failures: " if number == 0 else ", "
        if len(text) + len(lead) + len(name) + 2 > _REPR:
            break
        text += lead + name
    return text + ">"
