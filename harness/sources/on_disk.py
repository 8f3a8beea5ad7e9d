"""What the sources on disk have in common: a corpus is made once, and every process of a trial is instrumented."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract.job import Contract
from ..corpus.stored import Stored
from ..errors import UserError
from ..trial.spec import TrialSpec
from .base import Offer, Prepared, Question
from .truth import StoredTruth, Truth, Walk

if TYPE_CHECKING:
    from ..trial.event_log import Recorder
    from ..trial.stored_batch import StoredBatchReader


@dataclasses.dataclass(frozen=True)
class OnDisk:
    """A corpus of one kind."""

    name: str
    about: str
    integers_are_ids: bool = False
    """Whether a column of integers in a tuple contains ids; otherwise it contains classes."""
    walk: Walk = Walk.INDEX
    offers: str = "root"

    def preload(self) -> None:
        """Import the reader of manifests, and the decoder."""
        from ..instrumentation import decoder
        from ..trial import stored_batch

        del decoder, stored_batch

    def drop_in(self, contract: Contract) -> Contract:
        """A drop-in class takes a data set, so it is not offered a corpus."""
        return contract

    def prepare(self, question: Question, folder: Path) -> Prepared:
        """Make the corpus, unless it exists."""
        from ..corpus.facts import facts, recipe_text
        from ..corpus.make import make

        recipe = question.recipe
        assert recipe is not None
        digest = hashlib.sha256(recipe_text(recipe).encode()).hexdigest()[:12]
        root = folder / f"{self.name}-{digest}"
        if not root.exists():
            folder.mkdir(parents=True, exist_ok=True)
            make(str(root), recipe, jobs=1)
        stored, plan = facts(str(root))
        return Prepared(recipe.samples, plan, str(root.resolve()), stored)

    def restore(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """Make the corpus again if it no longer exists."""
        if spec.root is not None and Path(spec.root).is_dir():
            return spec
        return self.make_again(spec, folder / "corpus")

    def make_again(self, spec: TrialSpec, root: Path) -> TrialSpec:
        """Make the corpus again. Other versions of the libraries may write or judge it differently."""
        from ..corpus.facts import facts, recipe_of
        from ..corpus.make import make

        if spec.stored is None:
            raise UserError(f"the trial reads the corpus {spec.root}, and has no recipe to make it again")
        make(str(root), recipe_of(spec.stored), jobs=1)
        stored, plan = facts(str(root))
        if (stored, plan) != (spec.stored, spec.plan):
            raise UserError(
                f"the corpus of {spec.id} cannot be made again as it was: {_difference(spec.stored, stored)}; the libraries "
                "that make and judge it have other versions here"
            )
        return dataclasses.replace(spec, root=str(root.resolve()))

    def lend(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """If the corpus has slow pipes: a separate corpus for the trial. Two readers of one pipe would split the bytes."""
        from ..corpus.facts import recipe_of
        from ..corpus.make import make

        if not _has_slow_pipes(spec):
            return spec
        assert spec.stored is not None
        root = str(folder / "corpus")
        make(root, recipe_of(spec.stored), jobs=1)
        return dataclasses.replace(spec, root=root)

    def supply(self, spec: TrialSpec) -> AbstractContextManager[object]:
        """A writer for each slow pipe."""
        from ..corpus.pipes import feeding

        return feeding(spec.root) if _has_slow_pipes(spec) and spec.root is not None else nullcontext()

    def enter(self, spec: TrialSpec, rank: int, folder: Path) -> None:
        """Instrument this process and those that it will start."""
        from .. import instrumentation

        assert spec.root is not None
        os.environ.update(instrumentation.environment(folder, rank, spec.root))
        instrumentation.enter(str(folder), rank, spec.root)

    def serve(self, spec: TrialSpec, rank: int, recorder: Recorder, folder: Path) -> Offer:
        """The corpus, and the decoder that crashes on some of its files."""
        from ..corpus.samples import StoredSamples
        from ..instrumentation.decoder import Decode

        root = spec.root or ""
        return Offer(root=Path(root), decode=Decode(lazy=spec.lazy_decode), listing=StoredSamples(root))

    def reader(self, spec: TrialSpec, ids: Callable[[Any], Any] | None) -> StoredBatchReader:
        """A reader that knows the manifest."""
        from ..trial.stored_batch import StoredBatchReader

        return StoredBatchReader(Path(spec.root or ""), spec.plan, ids, integers_are_ids=self.integers_are_ids)

    def truth(self, spec: TrialSpec) -> Truth:
        """What the manifest said when the trial was prepared."""
        return StoredTruth(spec, self.walk)


def _has_slow_pipes(spec: TrialSpec) -> bool:
    from ..corpus.base import State

    return spec.stored is not None and bool(spec.stored.with_state(State.SLOW.value))


def _difference(before: Stored, now: Stored) -> str:
    old, new = dict(before.states), dict(now.states)
    for sample in sorted(old.keys() | new.keys()):
        if old.get(sample) != new.get(sample):
            return f"sample {sample} was {old.get(sample, 'good')} and is now {new.get(sample, 'good')}"
    return "its files are laid out in another way"
