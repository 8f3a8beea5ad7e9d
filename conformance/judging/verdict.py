"""What a check says about a trial, as data."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from ...harness.contract.source_names import DEFAULT, cell
from ...harness.trial.spec import Topology


class Mark(str, enum.Enum):
    """The values of a verdict, the worst first; a trial's worst is the first of these that occurs."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"
    NA = "n/a"
    KNOWN = "known"


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """A cause that fits what was seen."""

    id: str
    text: str

    def to_json(self) -> dict[str, str]:
        """``{"id", "text"}``."""
        return dataclasses.asdict(self)


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
    error: str = ""
    """The first error that the loader raised in this trial, with the errors behind it, where ``happened`` does not say it."""
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
            "error": self.error,
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
            source=data.get("source", DEFAULT),
            topology=Topology(**data["topology"]),
            check=data["check"],
            mark=Mark(data["verdict"]),
            promised=data["promised"],
            happened=data["happened"],
            error=data.get("error", ""),
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
