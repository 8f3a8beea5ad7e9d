"""What the trials of a suite read. Everything is made once, in the suite's scratch folder, before any trial runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...harness.sources.base import Prepared, Question, find
from ..scenarios.base import Scenario


class Preparations:
    """Prepares each source on its first use.

    Args:
        folder: where it is made; the folder need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, str], Prepared] = {}

    def settings(self, scenario: Scenario, source: str, samples: int, batch_size: int, seed: int) -> dict[str, Any]:
        """What a trial's spec says about its source: ``samples``, ``plan``, ``root`` and ``stored``.

        Args:
            samples: how many the user wants; the scenario decides how many there are.

        Raises:
            UserError: a library that is needed to make it is not installed.
        """
        return dict(vars(self.prepared(source, scenario.question(source, samples, batch_size, seed))))

    def prepared(self, source: str, question: Question) -> Prepared:
        """What a trial must know about its source.

        Raises:
            UserError: a library that is needed to make it is not installed.
        """
        key = (source, repr(question))  # a recipe contains mappings, and so has no hash
        if key not in self._made:
            self._made[key] = find(source).prepare(question, self._folder)
        return self._made[key]
