"""What a check says about a trial, as data; and how one recorded trial is judged."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import traceback
from collections.abc import Sequence
from typing import Any

from ...harness.contract.job import Contract
from ...harness.contract.source_names import cell
from ...harness.sources.base import truth
from ...harness.trial.history import History
from ...harness.trial.spec import Topology
from ..checks import Check, Violation, causes_first, registry
from ..diagnoses.diagnosis import Diagnosis, diagnose
from .accounting import account
from .doubts import disturbance, doubt, not_drawn, not_listed, not_struck, not_taken
from .expectation import Expectation, expect
from .ledger import Ledger


class Mark(str, enum.Enum):
    """The values of a verdict, the worst first; a trial's worst is the first of these that occurs."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"
    NA = "n/a"
    KNOWN = "known"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One check on one trial."""

    loader: str
    scenario: str
    source: str
    topology: Topology
    check: str
    mark: Mark
    promised: str = ""
    happened: str = ""
    lost: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    witnesses: tuple[int, ...] = ()
    share: str = ""
    files: tuple[tuple[int, str], ...] = ()
    """(sample, path in its corpus) of some of the samples above, if they are on disk."""
    diagnosis: Diagnosis | None = None
    replay: str = ""
    """The command that runs the trial again."""
    reason: str = ""
    """Why it is n/a, inconclusive or known."""
    cause: str = ""
    """The check whose violation in the same trial explains this one, or cut the trial short before this one could be
    judged; empty: it has no cause."""
    flaky: tuple[int, int] | None = None
    """(times it failed, times the trial was run), if the verdict was not the same each time."""

    @property
    def trial(self) -> str:
        """The id of the trial: ``one-bad[workers=2]``."""
        inside = cell(self.topology, self.source)
        return f"{self.scenario}[{inside}]"

    def to_json(self) -> dict[str, Any]:
        """The verdict as the JSON report has it (schema 1)."""
        return {
            "scenario": self.scenario,
            "source": self.source,
            "topology": self.topology.to_json(),
            "check": self.check,
            "verdict": self.mark.value,
            "promised": self.promised,
            "happened": self.happened,
            "lost": list(self.lost),
            "duplicated": list(self.duplicated),
            "witnesses": list(self.witnesses),
            "share": self.share,
            "files": {str(sample): path for sample, path in self.files},
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_json(),
            "replay": self.replay,
            "reason": self.reason,
            "cause": self.cause,
            "flaky": self._rate(),
            "unsteady": self._rate(),  # the field's first name, which readers of schema 1 may still use
        }

    def _rate(self) -> dict[str, int] | None:
        return None if self.flaky is None else {"failed": self.flaky[0], "runs": self.flaky[1]}

    @classmethod
    def from_json(cls, loader: str, data: dict[str, Any]) -> Verdict:
        """The inverse of :meth:`to_json`."""
        flaky = data.get("flaky", data.get("unsteady"))
        return cls(
            loader=loader,
            scenario=data["scenario"],
            source=data.get("source", "map"),
            topology=Topology(**data["topology"]),
            check=data["check"],
            mark=Mark(data["verdict"]),
            promised=data["promised"],
            happened=data["happened"],
            lost=tuple(data["lost"]),
            duplicated=tuple(data["duplicated"]),
            witnesses=tuple(data.get("witnesses", ())),
            share=data.get("share", ""),
            files=tuple((int(sample), path) for sample, path in data.get("files", {}).items()),
            diagnosis=None if data["diagnosis"] is None else Diagnosis(**data["diagnosis"]),
            replay=data["replay"],
            reason=data["reason"],
            cause=data.get("cause", ""),
            flaky=None if flaky is None else (flaky["failed"], flaky["runs"]),
        )


CUT_SHORT_BY = ("finite-epoch", "correct-timeout", "no-leftovers", "crash-surfaces")
"""Checks whose violation cuts a trial short: a call of next() that never returns, a close that never ends, a process
that died."""


def judge(history: History, *, contract: Contract | None = None, clean: str = "", replay: str = "") -> list[Verdict]:
    """Apply every check that a trial exercises to its history.

    Args:
        contract: used in place of the trial's own.
        clean: why the loader failed the clean scenario in this topology; empty: it did not.
        replay: the command that runs the trial again.
    """
    expected = expect(history.spec, contract)
    ledger = account(history, expected)
    spoiled = _spoiled(history, clean)
    found: list[Verdict] = []
    for check in registry().values():
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
    try:
        violations = check(history, ledger, expected)
    except Exception as error:  # a check that raises is a bug of badbatch, and must not be reported as the loader's
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"the check itself raised {type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=reason)
    if spoiled:
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=spoiled)
    if violations:
        return _failed(verdict, check, violations, history, ledger, expected)
    if idle := not_struck(spec) or not_drawn(history, expected) or not_taken(expected) or not_listed(history, expected):
        return dataclasses.replace(verdict, mark=Mark.NA, reason=idle)
    why = doubt(history)
    if why and not (check.can_acquit_cut and history.ended.cut):
        cause = "" if history.complete else CUT_SHORT_BY[0]  # fold() inserts the check that really failed
        return dataclasses.replace(verdict, mark=Mark.INCONCLUSIVE, reason=why, cause=cause)
    return verdict


def _failed(
    verdict: Verdict,
    check: Check,
    violations: list[Violation],
    history: History,
    ledger: Ledger,
    expected: Expectation,
) -> Verdict:
    first = violations[0]
    more = f" (and {len(violations) - 1} more of this kind)" if len(violations) > 1 else ""
    diagnosis, reason = None, ""
    try:
        diagnosis = diagnose(check.id, history, ledger, expected)
    except Exception as error:  # the verdict is valid without the likely cause
        reason = f"looking for the likely cause raised {type(error).__name__}: {error}"
    return dataclasses.replace(
        verdict,
        mark=Mark.FAIL,
        promised=first.promised,
        happened=first.happened + more,
        lost=first.lost,
        duplicated=first.duplicated,
        witnesses=first.witnesses,
        share=first.share,
        files=_files(history, first),
        cause=first.follows_from if len({violation.follows_from for violation in violations}) == 1 else "",
        diagnosis=diagnosis,
        reason=reason,
    )


_MOST_FILES = 8


def _files(history: History, violation: Violation) -> tuple[tuple[int, str], ...]:
    """The files of the first samples that a violation names, so that a user can look at them."""
    known = truth(history.spec)
    samples = dict.fromkeys([*violation.lost, *violation.witnesses, *violation.duplicated])
    found = ((sample, known.path_of(sample)) for sample in itertools.islice(samples, _MOST_FILES))
    return tuple((sample, path) for sample, path in found if path)


def _spoiled(history: History, clean: str) -> str:
    """Why nothing that a trial shows can be blamed on the loader; empty: it can."""
    return clean if clean and history.spec.plan else disturbance(history)
