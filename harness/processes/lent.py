"""What single trials are lent by their sources, until they end."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ..sources.base import find
from ..trial.spec import TrialSpec


class Lent:
    """Asks the source of each trial for what that trial alone may read."""

    def __init__(self) -> None:
        self._open: dict[int, ExitStack] = {}

    def lend(self, number: int, spec: TrialSpec, folder: Path) -> TrialSpec:
        """The trial with what it is lent until :meth:`end`."""
        spec, self._open[number] = find(spec.source).lend(spec, folder)
        return spec

    def end(self, number: int | None = None) -> None:
        """Take back what one trial was lent, or all were."""
        for lent in [number] if number is not None else list(self._open):
            if lent in self._open:
                self._open.pop(lent).close()
