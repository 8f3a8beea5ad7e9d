"""One suite over several processes, like those of pytest-xdist: each trial is run by the first process that claims it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from ...harness.trial.spec import TrialSpec
from ..judging.verdict import Verdict
from ..report.result import TrialResult
from .artifacts import slug

ELSEWHERE_S = 120.0  # how long another process may need for a claimed trial, beyond the deadlines of its runs


class Claims:
    """The folder through which the processes exchange what they run, and the results."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, spec: TrialSpec) -> bool:
        """Whether this process is the first to claim the trial."""
        try:
            self._home(spec).mkdir(parents=True)
        except FileExistsError:
            return False
        return True

    def tell(self, result: TrialResult) -> None:
        """Store the result of a trial for the others, unless one of them has already stored one: then that one counts for all."""
        home = self._home(result.spec)
        data = {"trial": result.to_json(), "verdicts": [verdict.to_json() for verdict in result.verdicts]}
        home.mkdir(parents=True, exist_ok=True)
        partial = home / f"result.{os.getpid()}"
        partial.write_text(json.dumps(data), encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(partial, home / "result.json")
        partial.unlink()

    def result(self, loader: str, spec: TrialSpec) -> TrialResult | None:
        """The result that the process that claimed the trial has stored, if it has."""
        try:
            data = json.loads((self._home(spec) / "result.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return TrialResult.from_json(loader, data["trial"], [Verdict.from_json(loader, entry) for entry in data["verdicts"]])

    def overdue(self, spec: TrialSpec, runs: int) -> bool:
        """Whether the process that claimed the trial must have died: this many runs would long have ended."""
        since = time.time() - self._home(spec).stat().st_mtime
        return since > runs * spec.deadline_s + ELSEWHERE_S

    def _home(self, spec: TrialSpec) -> Path:
        return self._folder / slug(spec.id)
