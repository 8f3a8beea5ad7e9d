"""What a loader factory is given, and how it declares what it promises."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import UserError
from ..nearest import hint, unknown
from ..plain import Plain
from .choices import (
    PROMISES,
    AfterError,
    Batches,
    BlastRadius,
    OnDamage,
    Order,
    Readers,
    Resume,
    ShortBatches,
    Tail,
    Unshuffled,
)
from .once import make_once
from .samples import Sample
from .source_names import SOURCES

if TYPE_CHECKING:
    from torch.utils.data import Dataset, IterableDataset

FORMATS = ("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff", "bmp", "ppm", "jp2", "avif", "heic")
"""File extensions of pictures that a loader may declare to accept; corpora contain some of them."""
SAME_FORMAT = {"jpeg": "jpg", "tif": "tiff"}
"""Extensions that mean the same format as another."""


@dataclasses.dataclass(frozen=True)
class Job:
    """Everything that a loader factory is given. One job is one rank's share of a trial."""

    source: str
    """``map``, ``stream``, ``sharded_stream``, or a source on disk."""
    dataset: Dataset[Any] | IterableDataset[Any] | None
    """For the sources in memory; None otherwise."""
    root: Path | None
    """The corpus folder, for sources on disk; None otherwise."""
    samples: int
    """How many samples the source has over all ranks, including damaged ones."""
    batch_size: int
    num_workers: int
    rank: int
    world_size: int
    shuffle: bool
    seed: int
    epoch: int
    drop_last: bool
    timeout: float
    """Seconds that ``next()`` may wait for a batch; 0 means without limit."""
    start_method: str | None
    """``fork``, ``spawn`` or ``forkserver`` for the loader's workers; None: the platform's default."""
    max_consecutive_skips: int | None
    """How many damaged samples in a row may be skipped before the loader must raise; None: any number."""
    on_skip: Callable[[int | str | os.PathLike[str], BaseException | str], None]
    """A function to call with the sample's id and the reason, for each skipped sample. It is picklable and works in any
    worker process. The id is -1 if the loader cannot tell which sample it was. For sources on disk it may also be the
    path of the sample's file, or its key in a shard."""
    decode: Callable[[bytes], Any] | None = None
    """For sources on disk: decodes the bytes of a picture's file to a PIL picture, for pipelines that accept a decoder;
    picklable. On some files of some scenarios it crashes, as a native decoder does."""
    persistent_workers: bool = False
    """Whether the workers of one epoch should also serve the next one; set only if the loader declares that it supports
    this."""
    work_dir: Path | None = None
    """A folder of the trial, shared by its ranks, for the loader's own files. Files left in it are not a leak."""
    cache_dir: Path | None = None
    """On disk: a folder shared by all trials over the same corpus, for what a loader makes from it once. None in
    memory."""

    listing: Callable[[], Iterator[Sample]] | None = dataclasses.field(default=None, repr=False)
    """Gives what :meth:`stored_samples` gives; picklable."""

    def stored_samples(self) -> Iterator[Sample]:
        """Every sample in order of ids, as it is stored, damage included, for a writer of another format.

        Samples that are missing from the source are left out.

        Raises:
            UserError: the job was made without a source.
        """
        if self.listing is None:
            raise UserError("this job has no source whose samples could be listed")
        return self.listing()

    def make_once(self, name: str, make: Callable[[Path], Any]) -> Path:
        """Make ``cache_dir / name`` unless it exists; without a ``cache_dir``, in ``work_dir``.

        Args:
            make: called with the path at which to make a file or a folder. If several processes ask at the same time,
                one makes it and the others wait.

        Returns:
            The path of the file or folder.

        Raises:
            UserError: the job has neither folder.
        """
        home = self.cache_dir or self.work_dir
        if home is None:
            raise UserError("this job has neither a cache_dir nor a work_dir")
        return make_once(home / name, make)


@dataclasses.dataclass(frozen=True)
class Contract(Plain):
    """What a loader promises. None: not declared, so it is inferred from a probe and then required everywhere."""

    on_damage: OnDamage | None = None
    after_error: AfterError | None = None
    """For ``on_damage="raise"``: does the epoch continue after an error?"""
    batches: Batches | None = None
    """Does a skip shorten its batch, or is the batch refilled?"""
    tail: Tail | None = None
    """What happens to the remainder if the number of samples is not a multiple of the ranks. ``pad-batch``: each rank's
    last batch is also filled up."""
    sources: tuple[str, ...] | None = None
    workers: tuple[int, ...] | None = None
    """The worker counts that the loader supports; None: all."""
    ranks: tuple[int, ...] | None = None
    """The world sizes that the loader supports; None: all."""
    timeout: bool = True
    """Whether the loader respects ``job.timeout`` when it has workers."""
    uneven_ranks: bool = False
    """Whether ranks may make different numbers of steps."""
    persistent_workers: bool | None = None
    """Whether the loader respects ``job.persistent_workers``. None: a drop-in class does if its signature has the
    parameter; a factory does not."""
    blast_radius: BlastRadius | None = None
    """How much one fault on disk may cost beyond its own sample."""
    replacement: bool = False
    """Whether samples are drawn with replacement or by weight: an epoch has as many samples as the source, but no
    particular sample is owed."""
    readers: Readers | None = None
    """Who reads when the loader has workers: other processes, threads of the consumer's process, or the consumer
    itself. None: inferred; if no read can be seen, other processes."""
    short_batches: ShortBatches | None = None
    """Which batches may be short without a skip: the last one of a rank, or (``per-worker``) the last one of each
    worker, which batches its own samples. With ``drop_last`` each worker then drops its partial batch."""
    resume: Resume | None = None
    """What ``load_state_dict(state)`` of a new loader does with a state that ``state_dict()`` gave between two calls of
    ``next()``. ``exact``: the epoch goes on with what had not arrived, and a state of another topology is refused if
    that is impossible; ``refuse``: any state may be refused, with an error; ``none``: a loader has no state. None:
    ``exact`` if the loader has both methods, else ``none``."""
    attempts: int | None = None
    """How often a sample whose read fails with an ``OSError`` is read at most in one epoch; other errors are final. None: up
    to ten times."""
    skip_budget: bool = False
    """Whether the loader raises an error when more damaged samples in a row than ``job.max_consecutive_skips`` were
    skipped, and says how many. Several workers or ranks may each count on their own."""
    shuffles: bool | None = None
    """Whether the loader shuffles if ``job.shuffle`` says so, in another order in each epoch. None: it does on ``map``,
    and a drop-in class does if its signature has the parameter ``shuffle``; nothing is promised on other sources."""
    order: Order | None = None
    """What decides the order of a shuffled epoch. ``seeded``: the seed and the number of the epoch, so that two runs in one
    topology have the same order; ``invariant``: they decide it with any number of workers; ``free``: nothing is promised.
    None: ``seeded``, but ``free`` for a drop-in class whose signature has no ``generator``."""
    unshuffled: Unshuffled | None = None
    """In which order the samples come without shuffling. ``source``: in that of the source, with any number of workers;
    ``per-worker``: each worker delivers its own samples in that order; ``free``: nothing is promised. None: ``source`` in
    memory, or ``per-worker`` where workers read and batch shares of their own; on disk inferred."""
    formats: tuple[str, ...] | None = None
    """The file extensions of pictures that the loader accepts, without the dot; nothing is required for others. None:
    all."""
    divisible: bool = True
    """Whether the samples can be divided over several ranks. Not declared: false for a drop-in class without a ``sampler``
    parameter on a source that does not divide itself."""
    inferred: tuple[str, ...] = ()
    """The names of the parts above that were inferred from a probe instead of declared."""


F = TypeVar("F", bound=Callable[..., Any])
_DECLARABLE = {field.name for field in dataclasses.fields(Contract)} - {"divisible", "inferred"}
_FLAGS = ("timeout", "uneven_ranks", "persistent_workers", "replacement", "skip_budget", "shuffles")
_SETS: dict[str, int | None] = {"sources": None, "workers": 0, "ranks": 1, "formats": None}  # with the smallest number that makes sense


def loader(
    *,
    ids: Callable[[Any], Any] | None = None,
    by_source: Mapping[str, Mapping[str, Any]] | None = None,
    **promises: Any,
) -> Callable[[F], F]:
    """Declare what the decorated loader factory promises (see :class:`Contract` for the parts).

    Args:
        ids: a function from one batch to its sample ids (a sequence or tensor of ints, one for each sample; -1 for a
            sample that is marked as missing and has no id), for batches whose ids cannot be found without help.
        by_source: from a source to the promises that differ there: ``{"stream": {"tail": "exact"}}``.

    Raises:
        UserError: an unknown promise, or a value that it cannot have.
    """
    contract = Contract(**_checked(promises))
    if ids is not None and not callable(ids):
        raise UserError(f"@loader(ids={ids!r}): must be a function from a batch to its sample ids")
    differing: dict[str, Contract] = {}
    for source, others in (by_source or {}).items():
        _several("sources", source)
        if "sources" in others:
            raise UserError(f"@loader(by_source={{{source!r}: …}}): sources are declared once, for the loader as a whole")
        differing[source] = dataclasses.replace(contract, **_checked(dict(others)))

    def declare(factory: F) -> F:
        factory.__badbatch_contract__ = contract  # type: ignore[attr-defined]
        factory.__badbatch_by_source__ = differing  # type: ignore[attr-defined]
        factory.__badbatch_ids__ = ids  # type: ignore[attr-defined]
        return factory

    return declare


def _checked(promises: dict[str, Any]) -> dict[str, Any]:
    """The promises, with single values as tuples where several are allowed. Refuses invalid ones."""
    for name, value in promises.items():
        if name not in _DECLARABLE:
            raise UserError(f"@loader knows no promise {name!r}{hint(name, sorted(_DECLARABLE))}")
        if name in PROMISES and value is not None and value not in PROMISES[name]:
            raise UserError(f"@loader({name}={value!r}): must be one of {', '.join(map(repr, PROMISES[name]))}")
        if name in _FLAGS and not isinstance(value, bool):
            raise UserError(f"@loader({name}={value!r}): must be True or False")
        if name == "attempts" and value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise UserError(f"@loader(attempts={value!r}): must be a whole number from 1 on")
        if name in _SETS and value is not None:
            promises[name] = _several(name, value)
    return promises


def _several(name: str, value: Any) -> tuple[Any, ...]:
    """One or several sources, numbers or extensions as a tuple."""
    if name == "formats" and isinstance(value, (str, tuple, list, set, frozenset)):
        value = tuple(str(ending).lower().removeprefix(".") for ending in ([value] if isinstance(value, str) else value))
    try:
        values = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:  # a single number, or an invalid value, which is reported below
        values = (value,)
    if not values:
        raise UserError(f"@loader({name}=…) is empty: nothing would be left to test")
    for value in values:
        if name == "sources" and value not in SOURCES:
            raise UserError(f"@loader(sources=…): {unknown('source', value, SOURCES)}")
        if name == "formats" and value not in FORMATS:
            raise UserError(f"@loader(formats=…): {unknown('ending', value, FORMATS)}")
        least = _SETS[name]
        if least is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise UserError(f"@loader({name}={values!r}): must be whole numbers from {least} on")
    if name == "formats" and not {"jpg", "jpeg"} & set(values):
        raise UserError("@loader(formats=…) must name 'jpg': most pictures of a corpus are JPEG files")
    return values


def declared(target: Any, source: str = "") -> Contract:
    """The contract that ``target`` was decorated with, for one source if ``source`` is given; or an empty one."""
    differing = getattr(target, "__badbatch_by_source__", None)
    contract = differing.get(source) if isinstance(differing, dict) else None
    if contract is None:
        contract = getattr(target, "__badbatch_contract__", None)
    return contract if isinstance(contract, Contract) else Contract()
