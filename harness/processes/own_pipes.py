"""Corpora of a trial's own, for trials whose corpus has slow pipes."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from pathlib import Path

from ..corpus.base import State
from ..corpus.facts import recipe_of
from ..corpus.make import make
from ..corpus.pipes import feeding
from ..trial.spec import TrialSpec


class OwnPipes:
    """Makes and feeds a corpus for each trial with slow pipes: two readers of one pipe would split its bytes."""

    def __init__(self) -> None:
        self._fed: dict[int, ExitStack] = {}

    def lend(self, number: int, spec: TrialSpec, folder: Path) -> TrialSpec:
        """The trial with a corpus in its own folder whose pipes are fed until :meth:`end`; without slow pipes as it is."""
        if spec.stored is None or not spec.stored.with_state(State.SLOW.value):
            return spec
        root = str(folder / "corpus")
        make(root, recipe_of(spec.stored), jobs=1)
        self._fed[number] = ExitStack()
        self._fed[number].enter_context(feeding(root))
        return dataclasses.replace(spec, root=root)

    def end(self, number: int | None = None) -> None:
        """Feed no more: for one trial, or for all."""
        for fed in [number] if number is not None else list(self._fed):
            if fed in self._fed:
                self._fed.pop(fed).close()
