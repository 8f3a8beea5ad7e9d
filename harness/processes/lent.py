"""What sources provide to single trials, until they end."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ..sources.base import find
from ..trial.spec import TrialSpec


class Lent:
    """Asks the source of each trial for what only that trial may read."""

    def __init__(self) -> None:
        self._open: dict[int, ExitStack] = {}

    def lend(self, number: int, spec: TrialSpec, folder: Path) -> TrialSpec:
        """The trial with what its source provides until :meth:`end`."""
        spec, self._open[number] = find(spec.source).lend(spec, folder)
        return spec

    def end(self, number: int | None = None) -> None:
        """Release what was provided to one trial, or to all."""
        for lent in [number] if number is not None else list(self._open):
            if lent in self._open:
                self._open.pop(lent).close()
