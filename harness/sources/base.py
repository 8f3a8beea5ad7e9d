"""What a source is: one interface to everything that depends on what a loader is offered."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..contract.source_names import SOURCES
from ..errors import UserError
from ..plan import FaultPlan
from .truth import Truth, Walk

if TYPE_CHECKING:
    from ..contract.calling import Target
    from ..contract.job import Contract
    from ..contract.samples import Sample
    from ..corpus.base import Recipe
    from ..corpus.stored import Stored
    from ..trial.batch import BatchReader
    from ..trial.event_log import Recorder
    from ..trial.spec import TrialSpec


@dataclasses.dataclass(frozen=True)
class Question:
    """What a loader will be tested with, before anything was made for it."""

    samples: int
    plan: FaultPlan
    """Which samples have which fault. A source on disk ignores it, and takes the faults from the recipe."""
    recipe: Recipe | None = None
    """For sources on disk: the corpus."""


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What a trial must know about its source: fields of :class:`~badbatch.harness.trial.spec.TrialSpec`."""

    samples: int
    plan: FaultPlan
    root: str | None = None
    stored: Stored | None = None


@dataclasses.dataclass(frozen=True)
class Offer:
    """What one rank's :class:`~badbatch.harness.contract.job.Job` offers."""

    dataset: Any = None
    root: Path | None = None
    decode: Callable[[bytes], Any] | None = None
    listing: Callable[[], Iterator[Sample]] | None = None
    """Gives each sample as it is stored; picklable."""


class Source(Protocol):
    """One source.

    Each is a module of :mod:`badbatch.harness.sources.kinds` with an instance named ``SOURCE``, and is called like the module;
    importing it must not import torch.
    """

    name: str
    about: str
    """What it offers, in a few sentences: ``badbatch explain NAME`` prints them."""
    walk: Walk
    offers: str
    """The part of the job that is not None: ``dataset`` or ``root``."""

    def preload(self) -> None:
        """Import what the other methods need, so that the trials, which are forks of this process, need not import it each."""
        ...

    def drop_in(self, contract: Contract) -> Contract:
        """The contract of a drop-in class on this source: what follows from the way in which it is called."""
        ...

    def prepare(self, question: Question, folder: Path) -> Prepared:
        """Make what the trials of a question read, in ``folder``, unless it exists.

        Raises:
            UserError: a library that is needed is not installed.
        """
        ...

    def restore(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """A stored trial with what it reads, which is made again in ``folder`` if it no longer exists.

        Raises:
            UserError: it cannot be made, or not as it was.
        """
        ...

    def make_again(self, spec: TrialSpec, root: Path) -> TrialSpec:
        """A stored trial with what it reads made again at ``root``, so that the user can look at it.

        Raises:
            UserError: it reads nothing that is stored, or that cannot be made again as it was.
        """
        ...

    def lend(self, spec: TrialSpec, folder: Path) -> TrialSpec:
        """The trial with what only it may read, made in its own folder. Called once, in the process that owns the trial."""
        ...

    def supply(self, spec: TrialSpec) -> AbstractContextManager[object]:
        """While it is open, what the trial reads is supplied, where files alone do not supply it.

        Opened after the processes of the trial were started, since it may start threads.
        """
        ...

    def enter(self, spec: TrialSpec, rank: int, folder: Path) -> None:
        """Prepare this process, which becomes a rank, and those that it will start."""
        ...

    def serve(self, spec: TrialSpec, rank: int, recorder: Recorder, folder: Path) -> Offer:
        """What the job of one rank offers."""
        ...

    def reader(self, spec: TrialSpec, ids: Callable[[Any], Any] | None) -> BatchReader:
        """Finds out which samples are in a batch, and whether they are whole.

        Args:
            ids: the factory's own ``@loader(ids=…)`` function, if any.
        """
        ...

    def truth(self, spec: TrialSpec) -> Truth:
        """What is known about the samples of a trial."""
        ...


def find(name: str) -> Source:
    """The source of that name.

    Raises:
        UserError: there is none.
    """
    if name not in SOURCES:
        raise UserError(f"there is no source {name!r}; known are {', '.join(SOURCES)}")
    source: Source = importlib.import_module(f"{__package__}.kinds.{name}").SOURCE
    return source


def in_memory() -> list[Source]:
    """The sources that offer a data set."""
    return [source for source in map(find, SOURCES) if source.offers == "dataset"]


def on_disk() -> list[Source]:
    """The sources that offer a corpus."""
    return [source for source in map(find, SOURCES) if source.offers == "root"]


def promised(target: Target, source: str) -> Contract:
    """What a loader declares for a source: by the decorator, or by the way in which a drop-in class is called on it."""
    contract = target.contract(source)
    if not target.drop_in:
        return contract
    found = find(source)
    if found.walk is Walk.INDEX and contract.ranks is None and not target.takes("sampler"):
        # There is no other way to give a rank its share. A class that divides the samples itself declares its ranks.
        contract = dataclasses.replace(contract, divisible=False)
    return found.drop_in(contract)


def truth(spec: TrialSpec) -> Truth:
    """What is known about the samples of a trial."""
    return find(spec.source).truth(spec)
