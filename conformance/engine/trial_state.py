"""What is known about one trial while the suite runs: whether it is run, its repetitions, and the merged result."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path

from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..checks import Relation
from ..judging.expectation import expect
from ..judging.verdict import Mark, Verdict
from ..report.result import TrialResult
from ..scenarios.base import Scenario
from .relating import named


@dataclasses.dataclass
class TrialState:
    """What is known about one trial so far: its repetitions, and whether another trial is waited for."""

    spec: TrialSpec
    scenario: Scenario
    wanted: int = 1
    started: int = 0
    runs: list[tuple[History, list[Verdict]]] = dataclasses.field(default_factory=list)
    folder: Path | None = None
    result: TrialResult | None = None
    claimed: bool = False
    """This process has claimed it, if several share a suite."""
    elsewhere: bool = False
    """Another process has claimed it, and will provide the result."""
    keeps: bool = True
    """Whether this process is the one to keep its record."""
    hidden: bool = False
    """It is no part of the report: a relation compares it with another trial, or it is the clean trial of a cell."""
    over: bool = False
    """It has run as often as it should."""
    own: TrialResult | None = None
    """What its checks say, once it is over; relations that are asked of it may still wait for other trials."""
    absent: tuple[Mark, str] | None = None
    """Why it will never have a record, and the mark of verdicts that need one; None: it has one, or will have."""
    records: list[Path] = dataclasses.field(default_factory=list)
    """The folders of its runs, in order, as long as a relation may need them."""
    asked: list[Asked] = dataclasses.field(default_factory=list)
    """The relations that are asked of it."""
    needed_by: list[Asked] = dataclasses.field(default_factory=list)
    """The relations that compare another trial with it."""

    reruns_for: Asked | None = None
    """The relation for which it is run once more, so that only its record counts; None: its checks are judged."""

    @property
    def compared(self) -> bool:
        """Whether a relation still waits for its record, or for that of a trial that is compared with it."""
        relations = [*self.asked, *self.needed_by, *([] if self.reruns_for is None else [self.reruns_for])]
        return any(asked.wanted and asked.verdict is None for asked in relations)

    @property
    def waits(self) -> bool:
        """Whether it mostly waits, so that many others may run at the same time."""
        return self.scenario.slow

    @property
    def hurries(self) -> bool:
        """Whether it has a timeout and nothing that hangs: on a busy machine it may fail although the loader is correct."""
        return self.spec.timeout_s > 0 and not expect(self.spec).lethal.any()


@dataclasses.dataclass(eq=False)
class Asked:
    """A relation that is asked of one trial."""

    relation: Relation
    roles: dict[str, TrialState]
    """From each role to its trial; the one of which it is asked first."""
    wanted: bool = True
    """Whether its verdict was selected."""
    found: list[Verdict] = dataclasses.field(default_factory=list)
    """One for each time that all trials have run."""
    reruns: dict[str, TrialState] = dataclasses.field(default_factory=dict)
    """The trials that are run once more, by role: a failure is confirmed."""
    records: dict[str, Path] = dataclasses.field(default_factory=dict)
    """By role the records between which it failed last."""
    verdict: Verdict | None = None
    """None: it waits for a trial."""

    @property
    def subject(self) -> TrialState:
        """The trial of which it is asked."""
        return next(iter(self.roles.values()))

    @property
    def ids(self) -> dict[str, str]:
        """From each role to the id of its trial."""
        return named({role: state.spec for role, state in self.roles.items()})


def merge(runs: list[list[Verdict]]) -> list[Verdict]:
    """One verdict for each check over several runs of the same trial: the worst, and its rate if they differ."""
    merged: list[Verdict] = []
    order = list(Mark)
    by_check: dict[str, list[Verdict]] = collections.defaultdict(list)
    for verdicts in runs:
        for verdict in verdicts:
            by_check[verdict.check].append(verdict)
    for several in by_check.values():
        # What explains a failure in one run does not explain it where the failure also occurs without it.
        worst = min(several, key=lambda verdict: (order.index(verdict.mark), verdict.mark is Mark.FAIL and bool(verdict.cause)))
        failed = sum(verdict.mark is Mark.FAIL for verdict in several)
        if len({verdict.mark for verdict in several}) > 1:
            worst = dataclasses.replace(worst, flaky=(failed, len(several)))
        merged.append(worst)
    return merged
