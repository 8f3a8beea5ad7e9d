"""How a relation between several recorded trials is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..checks import Recorded, Relation, registry
from ..diagnoses.diagnosis import diagnose_relation
from ..judging.accounting import account
from ..judging.doubts import doubt, not_carried
from ..judging.expectation import expect
from ..judging.verdict import CUT_SHORT_BY, Mark, Verdict
from .judge import failed, idle, spoiled_by, violations_of


def record(history: History) -> Recorded:
    """A history with its ledger and its expectation."""
    expected = expect(history.spec)
    return Recorded(history, account(history, expected), expected)


def named(specs: Mapping[str, TrialSpec]) -> dict[str, str]:
    """From each role to the id of its trial; without the number of its repetition, unless two roles have the same trial."""
    found: dict[str, str] = {}
    for role, spec in specs.items():
        short = spec.id.partition("#")[0]
        found[role] = spec.id if short in found.values() else short
    return found


def relate(
    relation: Relation, trials: Mapping[str, Recorded], *, clean: Mapping[str, str] | None = None, replay: str = ""
) -> Verdict:
    """Judge a relation.

    Args:
        trials: by role, the one that is asked about first.
        clean: by role, why the loader failed the clean scenario in the topology of that trial; missing or empty: it did not.
        replay: the command that runs the trials again.
    """
    subject = trials[relation.subject]
    spec = subject.spec
    ids = named({role: trial.spec for role, trial in trials.items()})
    verdict = Verdict(
        spec.loader, spec.scenario, spec.source, spec.topology, relation.id, Mark.PASS, replay=replay, trials=tuple(ids.items())
    )

    def because(role: str, why: str) -> str:
        return why if role == relation.subject else f"{ids[role]}: {why}"

    for role, trial in trials.items():
        reason = relation.needs(trial.expected.contract, trial.spec)
        if reason is not None:
            return dataclasses.replace(verdict, mark=Mark.NA, reason=reason)
        if not spoiled_by(trial.history, (clean or {}).get(role, "")) and (reason := not_carried(trial.history)):
            return dataclasses.replace(verdict, mark=Mark.NA, reason=because(role, reason))
    violations = violations_of(relation, lambda: relation(trials))
    if isinstance(violations, str):
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=violations)
    for role, trial in trials.items():
        if why := spoiled_by(trial.history, (clean or {}).get(role, "")):
            return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=because(role, why))
    if violations:
        return failed(verdict, violations, subject.history, lambda: diagnose_relation(relation.id, trials))
    for role, trial in trials.items():
        if nothing := idle(trial.history, trial.expected):
            return dataclasses.replace(verdict, mark=Mark.NA, reason=because(role, nothing))
    for role, trial in trials.items():
        if why := doubt(trial.history):
            cause = "" if trial.history.complete else CUT_SHORT_BY[0]  # explained() puts the check there that did fail
            where = ids[role] if cause and role != relation.subject else ""
            reason = because(role, why)
            return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=reason, cause=cause, cause_in=where)
    return verdict


def without(relation: Relation, spec: TrialSpec, trials: Mapping[str, str], mark: Mark, reason: str) -> Verdict:
    """The verdict of a relation where one of its trials has no record.

    Args:
        spec: the trial that is asked about.
        trials: from each role to the id of its trial.
    """
    return Verdict(
        spec.loader, spec.scenario, spec.source, spec.topology, relation.id, mark, reason=reason, trials=tuple(trials.items())
    )


def explained(relation: Relation, verdict: Verdict, found: Mapping[str, Sequence[Verdict]]) -> Verdict:
    """The verdict of a relation under the check that explains it, where one failed in one of its trials.

    Args:
        found: from the id of each of its trials to the verdicts of checks on it, the trial that is asked about first.
    """
    where = [verdict.cause_in or verdict.trial] if verdict.mark is Mark.INCONCLUSIVE and verdict.cause else list(found)
    for trial in where:
        for other in found.get(trial, ()):
            if other.mark in (Mark.FAIL, Mark.KNOWN) and _explains(other.check, relation, verdict):
                return dataclasses.replace(verdict, cause=other.check, cause_in="" if trial == verdict.trial else trial)
    return dataclasses.replace(verdict, cause="", cause_in="")


def standing_alone(verdict: Verdict) -> Verdict:
    """The verdict of a relation where the report does not show the failure that explains it: its reason names that failure."""
    if verdict.mark is not Mark.FAIL or not verdict.cause:
        return dataclasses.replace(verdict, cause="", cause_in="")
    reason = f"{verdict.cause_in or verdict.trial} breaks {verdict.cause} as well"
    return dataclasses.replace(verdict, cause="", cause_in="", reason=reason)


def _explains(check: str, relation: Relation, verdict: Verdict) -> bool:
    """Whether a failed check explains that the relation failed, or that a trial was cut before it could be compared."""
    if verdict.mark is Mark.INCONCLUSIVE:
        return bool(verdict.cause) and check in CUT_SHORT_BY
    return verdict.mark is Mark.FAIL and (check in relation.explained_by or relation.id in registry()[check].implies)


def consequences(verdicts: Sequence[Verdict], related: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on a trial, with the failures of checks that a failed relation explains put under it.

    Args:
        verdicts: of checks and of relations.
        related: those of relations.
    """
    behind = {
        check: verdict.check
        for verdict in related
        if verdict.mark is Mark.FAIL
        for check in registry()[verdict.check].implies
        if check != verdict.cause
    }
    return [
        dataclasses.replace(verdict, cause=behind[verdict.check])
        if verdict.mark is Mark.FAIL and not verdict.cause and verdict.check in behind
        else verdict
        for verdict in verdicts
    ]
