"""One suite over several processes, like those of pytest-xdist: each trial is run by the first process that claims it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ...harness.trial.spec import TrialSpec
from ..judging.verdict import Verdict
from ..report.result import TrialResult
from .artifacts import copy_record, slug

ELSEWHERE_S = 120.0  # how long another process may need for a claimed trial, beyond the deadlines of its runs

_SHARED = "records"


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
        home.mkdir(parents=True, exist_ok=True)
        partial = home / f"result.{os.getpid()}"
        partial.write_text(_told(result), encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(partial, home / "result.json")
        partial.unlink()

    def result(self, loader: str, spec: TrialSpec) -> TrialResult | None:
        """The result that the process that claimed the trial has stored, if it has."""
        return _read(self._home(spec) / "result.json", loader)

    def share(self, own: TrialResult, records: Sequence[Path]) -> None:
        """Store the records of a trial's runs for the others, and the verdicts of its checks: their relations may need them."""
        home = self._home(own.spec)
        partial = home / f"{_SHARED}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for number, record in enumerate(records):
            copy_record(record, partial / str(number))
        (partial / "own.json").write_text(_told(own), encoding="utf-8")
        try:
            partial.rename(home / _SHARED)
        except OSError:  # another process was first, since it held this one for dead
            shutil.rmtree(partial, ignore_errors=True)

    def shared(self, loader: str, spec: TrialSpec) -> tuple[TrialResult, list[Path]] | None:
        """What :meth:`share` left of a trial, if it has: what its checks say, and the records of its runs, in order."""
        folder = self._home(spec) / _SHARED
        own = _read(folder / "own.json", loader)
        if own is None:
            return None
        return own, sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))

    def overdue(self, spec: TrialSpec, runs: int) -> bool:
        """Whether the process that claimed the trial must have died: this many runs would long have ended."""
        since = time.time() - self._home(spec).stat().st_mtime
        return since > runs * spec.deadline_s + ELSEWHERE_S

    def _home(self, spec: TrialSpec) -> Path:
        return self._folder / slug(spec.id)


def _told(result: TrialResult) -> str:
    return json.dumps({"trial": result.to_json(), "verdicts": [verdict.to_json() for verdict in result.verdicts]})


def _read(path: Path, loader: str) -> TrialResult | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return TrialResult.from_json(loader, data["trial"], [Verdict.from_json(loader, entry) for entry in data["verdicts"]])
