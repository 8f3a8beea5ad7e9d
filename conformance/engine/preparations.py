"""What the trials of a suite read: each made once, in its scratch folder, before any trial runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...harness.sources.base import Prepared, Question, find
from ..scenarios.base import Scenario


class Preparations:
    """Prepares sources when they are first asked for.

    Args:
        folder: where what is made lies; it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, str], Prepared] = {}

    def settings(self, scenario: Scenario, source: str, samples: int, batch_size: int, seed: int) -> dict[str, Any]:
        """What a trial's spec says of its source: ``samples``, ``plan``, ``root`` and ``stored``.

        Args:
            samples: how many were asked for; the scenario decides how many there are.

        Raises:
            UserError: a library that is needed to make it is not installed.
        """
        return dict(vars(self.prepared(source, scenario.question(source, samples, batch_size, seed))))

    def prepared(self, source: str, question: Question) -> Prepared:
        """What a trial has to know of its source.

        Raises:
            UserError: a library that is needed to make it is not installed.
        """
        key = (source, repr(question))  # a recipe holds mappings, and so has no hash
        if key not in self._made:
            self._made[key] = find(source).prepare(question, self._folder)
        return self._made[key]
