"""The corpora of a suite: each made once, in its scratch folder, before the first trial that reads it."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from ...harness.corpus.facts import facts, recipe_of, recipe_text
from ...harness.corpus.make import make
from ...harness.corpus.stored import Stored
from ...harness.errors import UserError
from ...harness.plan import FaultPlan
from ...harness.trial.spec import TrialSpec
from ..scenarios.disk import DiskScenario


@dataclasses.dataclass(frozen=True)
class Corpus:
    """One corpus that is there."""

    root: Path
    samples: int
    stored: Stored
    plan: FaultPlan


class Corpora:
    """Makes corpora when they are first asked for.

    Args:
        folder: where they lie, one folder each; it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Corpus] = {}

    def question(self, scenario: DiskScenario, kind: str, samples: int, batch_size: int, seed: int) -> dict[str, Any]:
        """What a trial's spec says of its corpus: ``root``, ``stored``, ``plan`` and ``samples``.

        Raises:
            UserError: a library that is needed to make it is not installed.
        """
        recipe = scenario.recipe(kind, samples, batch_size, seed)
        name = recipe_text(recipe)
        if name not in self._made:
            root = self._folder / f"{kind}-{scenario.name}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            root.parent.mkdir(parents=True, exist_ok=True)
            make(str(root), recipe, jobs=1)
            self._made[name] = Corpus(root.resolve(), recipe.samples, *facts(str(root)))
        corpus = self._made[name]
        return {"root": str(corpus.root), "stored": corpus.stored, "plan": corpus.plan, "samples": corpus.samples}


def restored(spec: TrialSpec, folder: Path) -> TrialSpec:
    """A stored trial with its corpus, which is made again in ``folder`` where it is gone.

    Raises:
        UserError: it cannot be made, or not as it was: other versions of the libraries shape or judge it otherwise.
    """
    if spec.stored is None or (spec.root is not None and Path(spec.root).is_dir()):
        return spec
    root = folder / "corpus"
    make(str(root), recipe_of(spec.stored), jobs=1)
    stored, plan = facts(str(root))
    if (stored, plan) != (spec.stored, spec.plan):
        raise UserError(
            f"the corpus of {spec.id} cannot be made again as it was: {_difference(spec.stored, stored)}; the libraries that make "
            "and judge it are others here"
        )
    return dataclasses.replace(spec, root=str(root.resolve()))


def _difference(before: Stored, now: Stored) -> str:
    old, new = dict(before.states), dict(now.states)
    for sample in sorted(old.keys() | new.keys()):
        if old.get(sample) != new.get(sample):
            return f"sample {sample} was {old.get(sample, 'good')} and is {new.get(sample, 'good')}"
    return "its files are laid out otherwise"
