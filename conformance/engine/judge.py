"""How one recorded trial is judged: every check that it exercises, and the likely cause of each failure."""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from collections.abc import Callable, Sequence

from ...harness.contract.job import Contract
from ...harness.sources.base import truth
from ...harness.trial.history import History
from ..checks import Check, Promise, Violation, causes_first, of_one_trial, registry
from ..diagnoses.diagnosis import diagnose
from ..judging.accounting import account
from ..judging.doubts import disturbance, doubt, not_carried, not_drawn, not_listed, not_struck, not_taken
from ..judging.expectation import Expectation, expect
from ..judging.ledger import Ledger
from ..judging.raised import first_error
from ..judging.verdict import CUT_SHORT_BY, Diagnosis, Mark, Verdict


def judge(history: History, *, contract: Contract | None = None, clean: str = "", replay: str = "") -> list[Verdict]:
    """Apply every check that a trial exercises to its history.

    Args:
        contract: used in place of the trial's own.
        clean: why the loader failed the clean scenario in this topology; empty: it did not.
        replay: the command that runs the trial again.
    """
    expected = expect(history.spec, contract)
    ledger = account(history, expected)
    spoiled = spoiled_by(history, clean)
    found: list[Verdict] = []
    for check in of_one_trial().values():
        if check.exercised(history.spec):
            found.append(_one(check, history, ledger, expected, spoiled, replay))
    return fold(found)


def fold(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Put the consequences of a failure in the same trial under their cause."""
    failed = {verdict.check for verdict in verdicts if verdict.mark is Mark.FAIL}
    causes = {v.check: v.cause for v in verdicts if v.mark is Mark.FAIL and v.cause in failed}
    for cause in causes_first():
        for consequence in registry()[cause].implies:
            if cause in failed and consequence in failed and not _explains(causes, consequence, cause):
                causes.setdefault(consequence, cause)
    cut_short_by = next((check for check in CUT_SHORT_BY if check in failed), "")
    for verdict in verdicts:
        if verdict.mark is not Mark.FAIL and verdict.cause:
            causes[verdict.check] = cut_short_by
    return [dataclasses.replace(verdict, cause=causes.get(verdict.check, "")) for verdict in verdicts]


def _explains(causes: dict[str, str], first: str, second: str) -> bool:
    """Whether ``first`` is already known to cause ``second``: no two failures explain each other."""
    while second in causes:
        second = causes[second]
        if second == first:
            return True
    return False


def _one(
    check: Check, history: History, ledger: Ledger, expected: Expectation, spoiled: str, replay: str
) -> Verdict:
    spec = history.spec
    verdict = Verdict(spec.loader, spec.scenario, spec.source, spec.topology, check.id, Mark.PASS, replay=replay)
    reason = check.needs(expected.contract, spec)
    if reason is not None:
        return dataclasses.replace(verdict, mark=Mark.NA, reason=reason)
    if not spoiled and (reason := not_carried(history)):
        return dataclasses.replace(verdict, mark=Mark.NA, reason=reason)
    violations = violations_of(check, lambda: check(history, ledger, expected))
    if isinstance(violations, str):
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=violations)
    if spoiled:
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=spoiled)
    if violations:
        return failed(verdict, violations, history, lambda: diagnose(check.id, history, ledger, expected))
    if nothing := idle(history, expected):
        return dataclasses.replace(verdict, mark=Mark.NA, reason=nothing)
    why = doubt(history)
    if why and not (check.can_acquit_cut and history.ended.cut):
        cause = "" if history.complete else CUT_SHORT_BY[0]  # fold() inserts the check that really failed
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=why, cause=cause)
    return verdict


def violations_of(promise: Promise, find: Callable[[], list[Violation]]) -> list[Violation] | str:
    """The violations that a check or relation finds; a text if it raises: that is a bug of badbatch, and not of the loader."""
    try:
        return find()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = "check" if isinstance(promise, Check) else "relation"
        return f"the {what} itself raised {type(error).__name__}: {error} ({where.name}, line {where.lineno})"


def idle(history: History, expected: Expectation) -> str:
    """Why a trial asks nothing of the loader; empty: it does."""
    return not_struck(history.spec) or not_drawn(history, expected) or not_taken(expected) or not_listed(history, expected)


def failed(
    verdict: Verdict, violations: Sequence[Violation], history: History, find_cause: Callable[[], Diagnosis | None]
) -> Verdict:
    """The verdict with its violations: the first in words, the others as a count.

    Args:
        history: of the trial that holds the samples.
        find_cause: looks for the likely cause.
    """
    first = violations[0]
    more = f" (and {len(violations) - 1} more of this kind)" if len(violations) > 1 else ""
    diagnosis, reason = None, ""
    try:
        diagnosis = find_cause()
    except Exception as error:  # the verdict is valid without the likely cause
        reason = f"looking for the likely cause raised {type(error).__name__}: {error}"
    return dataclasses.replace(
        verdict,
        mark=Mark.FAIL,
        promised=first.promised,
        happened=first.happened + more,
        error=_error(verdict.check, history, first.happened),
        lost=first.lost,
        duplicated=first.duplicated,
        witnesses=first.witnesses,
        share=first.share,
        files=_files(history, first),
        cause=first.follows_from if len({violation.follows_from for violation in violations}) == 1 else "",
        diagnosis=diagnosis,
        reason=reason,
    )


_SAYS_NO_MORE = ("no-leftovers", "content-intact", "fields-complete", "no-duplicates")
"""Checks whose violations an error of the same trial does not explain."""


def _error(check: str, history: History, happened: str) -> str:
    said = "" if check in _SAYS_NO_MORE else first_error(history)
    return "" if said.partition(", and ")[0] in happened else said


_MOST_FILES = 8


def _files(history: History, violation: Violation) -> tuple[tuple[int, str], ...]:
    """The files of the first samples that a violation names, so that a user can look at them."""
    known = truth(history.spec)
    samples = dict.fromkeys([*violation.lost, *violation.witnesses, *violation.duplicated])
    found = ((sample, known.path_of(sample)) for sample in itertools.islice(samples, _MOST_FILES))
    return tuple((sample, path) for sample, path in found if path)


def spoiled_by(history: History, clean: str) -> str:
    """Why nothing that a trial shows can be blamed on the loader; empty: it can."""
    return clean if clean and history.spec.plan else disturbance(history)
