"""What the sources in memory have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract.job import Contract
from ..errors import UserError
from ..trial.spec import TrialSpec
from .base import Offer, Prepared, Question
from .truth import Truth, Walk

if TYPE_CHECKING:
    from ..trial.batch import BatchReader
    from ..trial.event_log import Recorder
    from .memory import Reader


@dataclasses.dataclass(frozen=True)
class InMemory:
    """A torch data set that applies a fault plan and records every read.

    Args:
        dataset: makes it from (samples, reader, rank, number of ranks).
        promises: what a drop-in class owes here, from the way in which it is called, where it declares nothing else.
    """

    name: str
    about: str
    walk: Walk
    dataset: Callable[[int, Reader, int, int], Any]
    promises: Callable[[Contract], Contract] = lambda contract: contract
    offers: str = "dataset"

    def preload(self) -> None:
        """Import the data sets, and with them torch.

        See :class:`~badbatch.harness.sources.base.Source`, also for the other methods.
        """
        from ..trial import batch
        from . import memory, memory_samples

        del batch, memory, memory_samples

    def drop_in(self, contract: Contract) -> Contract:
        """What follows from the way in which it is called."""
        return self.promises(contract)

    def prepare(self, question: Question, folder: Path) -> Prepared:
        """There is nothing to make."""
        return Prepared(question.samples, question.plan)

    def restore(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """There is nothing that could be missing."""
        return spec

    def make_again(self, spec: TrialSpec, root: Path) -> TrialSpec:
        """There is nothing to look at."""
        raise UserError(f"{spec.id} reads no corpus: its samples are made in memory, so leave --keep-corpus out")

    def lend(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """Every process has its own data set."""
        return spec

    def supply(self, spec: TrialSpec) -> AbstractContextManager[object]:
        """The data set supplies itself."""
        return nullcontext()

    def enter(self, spec: TrialSpec, rank: int, folder: Path) -> None:
        """Nothing outside the data set needs to be prepared."""

    def serve(self, spec: TrialSpec, rank: int, recorder: Recorder, folder: Path) -> Offer:
        """The data set."""
        from .memory import Reader
        from .memory_samples import MemorySamples

        reader = Reader(spec.plan, recorder, folder)
        dataset = self.dataset(spec.samples, reader, rank, spec.topology.ranks)
        return Offer(dataset=dataset, listing=MemorySamples(spec.samples, spec.plan, recorder))

    def reader(self, spec: TrialSpec, ids: Callable[[Any], Any] | None) -> BatchReader:
        """A reader that knows the rows of numbers."""
        from ..trial.batch import BatchReader

        return BatchReader(spec.plan, ids)

    def truth(self, spec: TrialSpec) -> Truth:
        """The plan contains everything."""
        return Truth(spec, self.walk)
