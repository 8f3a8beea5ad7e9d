"""Progress of a run, on a terminal's standard error; elsewhere nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from ..judging.verdict import Mark
from ..report.printable import printable
from ..report.result import TrialResult


class Progress:
    """One bar for the loader that is being run."""

    def __init__(self, quiet: bool = False) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._name = ""
        self._broken = 0
        if not quiet and sys.stderr.isatty():
            self._bar = _bar()

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, loader: str, trials: int | None = None) -> None:
        """A loader is imported or, if the number of its trials is given, run."""
        self._name, self._broken = printable(loader), 0
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(self._name, total=trials)

    def judged(self, result: TrialResult) -> None:
        """A trial was judged."""
        self._broken += any(verdict.mark is Mark.FAIL for verdict in result.verdicts)
        if self._bar is not None and self._task is not None:
            broken = f", {self._broken} broken" if self._broken else ""
            self._bar.update(self._task, advance=1, description=f"{self._name}{broken}")


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Bar(*columns, console=Console(stderr=True), transient=True)
