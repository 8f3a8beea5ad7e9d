"""What a check says about a trial, as data."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from ...harness.contract.source_names import DEFAULT, cell
from ...harness.plain import Plain
from ...harness.trial.spec import Topology


class Mark(str, enum.Enum):
    """The values of a verdict, the worst first; a trial's worst is the first of these that occurs."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"
    NA = "n/a"
    KNOWN = "known"


@dataclasses.dataclass(frozen=True)
class Diagnosis(Plain):
    """A cause that fits what was seen."""

    id: str
    text: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One check on one trial, or one relation between several: then it is asked of the trial that is named here."""

    loader: str
    scenario: str
    source: str
    topology: Topology
    check: str
    mark: Mark
    promised: str = ""
    happened: str = ""
    error: str = ""
    """The first error that the loader raised in this trial, with its causes, if ``happened`` does not contain it."""
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
    """The check whose violation explains this one, or cut the trial short before this one could be judged; empty: it has no
    cause."""
    cause_in: str = ""
    """The id of the trial in which that check failed; empty: in the same trial."""
    trials: tuple[tuple[str, str], ...] = ()
    """For a relation: (role, id of the trial) of all trials that it compares, this one first."""
    flaky: tuple[int, int] | None = None
    """(times it failed, times the trial was run), if the verdict was not the same each time."""

    @property
    def trial(self) -> str:
        """The id of the trial: ``one-bad[workers=2]``."""
        inside = cell(self.topology, self.source)
        return f"{self.scenario}[{inside}]"

    @property
    def compared(self) -> str:
        """For a relation: ``workers clean[workers=2], reference clean[workers=0]``; empty for a check."""
        return ", ".join(f"{role} {trial}" for role, trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """The verdict as the JSON report has it (schema 1)."""
        rate = None if self.flaky is None else Rate(*self.flaky)
        own = {name: getattr(self, name) for name in _ALIKE}
        return Entry(**own, verdict=self.mark, files=dict(self.files), trials=dict(self.trials), flaky=rate, unsteady=rate).to_json()

    @classmethod
    def from_json(cls, loader: str, data: Any) -> Verdict:
        """The inverse of :meth:`to_json`.

        Raises:
            UserError: the data are not a verdict.
        """
        return cls.of(loader, Entry.from_json(data))

    @classmethod
    def of(cls, loader: str, entry: Entry) -> Verdict:
        """The verdict of an entry of a JSON report."""
        rate = entry.flaky or entry.unsteady
        own = {name: getattr(entry, name) for name in _ALIKE}
        flaky = None if rate is None else (rate.failed, rate.runs)
        files, trials = tuple(entry.files.items()), tuple(entry.trials.items())
        return cls(**own, loader=loader, mark=entry.verdict, files=files, trials=trials, flaky=flaky)


@dataclasses.dataclass(frozen=True)
class Rate(Plain):
    """How often a flaky verdict failed."""

    failed: int
    runs: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry(Plain):
    """A verdict as schema 1 of the JSON report has it (docs/report-schema.md)."""

    scenario: str
    source: str = DEFAULT
    topology: Topology
    check: str
    verdict: Mark
    promised: str
    happened: str
    error: str = ""
    lost: tuple[int, ...]
    duplicated: tuple[int, ...]
    witnesses: tuple[int, ...] = ()
    share: str = ""
    files: Mapping[int, str] = dataclasses.field(default_factory=dict)
    diagnosis: Diagnosis | None
    replay: str
    reason: str
    cause: str = ""
    cause_in: str = ""
    trials: Mapping[str, str] = dataclasses.field(default_factory=dict)
    flaky: Rate | None = None
    unsteady: Rate | None = None
    """The first name of ``flaky``, which readers of schema 1 may still use."""


_ALIKE = [field.name for field in dataclasses.fields(Entry) if field.name not in ("verdict", "files", "trials", "flaky", "unsteady")]
"""The fields that a verdict and its entry have in common."""


CUT_SHORT_BY = ("finite-epoch", "correct-timeout", "no-leftovers", "crash-surfaces")
"""Checks whose violation cuts a trial short: a call of next() that never returns, a close that never ends, a process
that died."""
