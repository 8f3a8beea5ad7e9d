"""What all kinds of corpus share: recipe, disk faults, the record of one sample, and what a kind must provide.

The engine (:mod:`.make`) asks a :class:`CorpusKind` for chunks, and for the files of each chunk as bytes in memory.
Only the engine writes files; a kind never touches the file system. The same chunk gives the same bytes in any process.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ..errors import HarnessError
from ..faults.base import Fault, Read
from ..faults.parameters import check_parameters
from ..plain import Plain, to_plain

SCHEMA_VERSION = 1
"""The version of ``manifest.badbatch``, ``files.badbatch`` and ``corpus.badbatch``; documented in ``docs/corpus-manifest.md``."""

Level = Literal["sample", "file", "shard", "path"]
Special = Literal["missing", "dangling-link", "directory", "no-permission", "fifo"]
"""What is at a path in place of an ordinary file. All but ``missing`` need a local file system."""


class State(str, enum.Enum):
    """The state of a sample after the damage, as reference decoders found it."""

    GOOD = "good"  # must be delivered
    DAMAGED = "damaged"  # must not be delivered as good; a loader that reads it must account for it
    CONTESTED = "contested"  # decoders disagree, or report no error although content was lost: may be skipped or delivered
    HANGS = "hangs"  # reading it never returns
    SLOW = "slow"  # reading it delivers the good sample, late
    MISSING = "missing"  # must not be delivered; a reader that lists the folder never sees it, one with an index does


class DiskFault(Fault):
    """Base class of everything that can be wrong with (or legal but odd about) stored samples.

    A subclass is a frozen dataclass in its own file below ``corpus/damage/<family>/``, registered with ``@fault(kind,
    effect=...)``. Each family of faults agrees with its corpus kind on how the damage is made.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    """The corpus kinds that it can be used in."""
    level: ClassVar[Level] = "sample"
    """What one instance acts on. A fault of a file or shard may damage every sample in it."""
    odd: ClassVar[bool] = False
    """True for a legal oddity, which a loader must deliver; False for damage."""
    weight: ClassVar[float] = 1.0
    """How often it is chosen compared with others, where the user gives no weight; below 1 if it is costly to make."""
    by_name: ClassVar[bool] = False
    """Chosen only if the user asks for it by name."""
    family: ClassVar[str] = ""
    """A short word that groups related faults in lists and scenarios (``cut``, ``bits``, ``path``, ``schema`` …)."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @classmethod
    def fits(cls, kind: str, storage: str) -> bool:
        """Whether it can be made in this kind and storage format."""
        return kind in cls.kinds

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> DiskFault:
        """The instance for the ``turn``-th unit (0, 1, 2 …) of a corpus that gets this fault.

        A parameter follows ``turn`` where each of its values should occur, and is drawn where any value is good enough.
        """
        return cls()

    def strike(self, read: Read) -> Any:
        raise HarnessError(f"fault {self.kind!r} damages stored samples and cannot strike a read in memory")


@dataclass(frozen=True)
class Choice:
    """One ``--fault NAME[:WEIGHT]``: a fault's kind, how often it is chosen, and the parameters that are not drawn."""

    fault: str
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    at: int | None = None
    """The one sample (for a fault of files: the one file, from 0) that gets the fault; None: it is drawn."""


@dataclass(frozen=True)
class Recipe(Plain):
    """Everything that decides a corpus's bytes, except library versions. Checked by :func:`.recipe.checked`."""

    kind: str
    samples: int
    seed: int = 0
    damage: float = 0.05
    """Share of the samples (0…1) that get a fault: ``round(damage * samples)`` of them, or about as many for faults of
    whole files and shards."""
    oddities: float = 0.0
    """Share of the samples (0…1) that are odd but legal. A damaged sample is never odd as well."""
    faults: tuple[Choice, ...] = ()
    """The faults to choose from; empty: all that fit the kind, with equal weights."""
    odd_faults: tuple[Choice, ...] = ()
    """The oddities to choose from; empty: all that fit the kind."""
    format: str | None = None
    """The kind's storage format (``jpeg``, ``png``; ``npz``, ``arrow``; ``tar.gz`` …); None: the kind's default."""
    size: tuple[int, int] = (256, 256)
    """Width and height of pictures, in pixels."""
    per_file: int = 100
    """Samples in one file or shard, for kinds that put several into one."""
    origin: str | None = None
    """For ``--from``: the folder whose good files are copied. Nothing is ever written to it."""


@dataclass(frozen=True)
class SampleRecord(Plain):
    """The truth about one sample: one line of ``manifest.badbatch``. Paths are relative to the corpus, with ``/``."""

    id: int
    path: str
    """The file (or shard) that contains it, or would contain it if it existed."""
    members: tuple[str, ...] = ()
    """Its members in a tar shard."""
    row: int | None = None
    """Its row (or line) in the file, from 0."""
    row_group: int | None = None
    state: State = State.GOOD
    fault: Mapping[str, Any] | None = None
    """:meth:`Fault.to_json` of the fault of the sample, or of a fault of its file that damaged the sample."""
    oddity: Mapping[str, Any] | None = None
    took_hold: bool | None = None
    """For a sample with a fault: did the fault change what a reader gets? False: the sample is still as good as
    before."""
    special: Special | None = None
    sha256: str | None = None
    """Of the sample's own bytes as they are on disk (file, members joined in order, line, or encoded row); None: no
    bytes."""
    length: int | None = None
    content: str | None = None
    """Digest of the undamaged sample. Two records have the same digest exactly when they contain the same sample."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The result of each reference decoder: ``whole``, ``lossy: …`` (no error, although content was lost), ``raises X:
    …``, or ``nothing`` (it ended without an error and never returned the sample)."""
    why: str = ""
    """The reason for the state, in words, where the sample is not simply good."""
    identity: Literal["content", "path"] = "content"
    """Whether the id can be read back from the content, or only from the path."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only one kind has, documented there."""

    def to_json(self) -> dict[str, Any]:
        """Fields that differ from their defaults, by name; ``id``, ``path`` and ``state`` always."""
        return _sparse(self, always=("id", "path", "state"))


@dataclass(frozen=True)
class FileRecord(Plain):
    """The bytes of one file that contains several samples: one line of ``files.badbatch``."""

    path: str
    samples: int = 0
    """How many samples are, or should be, in it."""
    fault: Mapping[str, Any] | None = None
    """:meth:`Fault.to_json` of a fault of the whole file or shard."""
    special: Special | None = None
    sha256: str | None = None
    length: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Fields that differ from their defaults, by name; ``path`` always."""
        return _sparse(self, always=("path",))


def _sparse(record: SampleRecord | FileRecord, always: tuple[str, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, default in _defaults(type(record)):
        value = getattr(record, name)
        if name in always or value != default:
            out[name] = to_plain(value)
    return out


_DEFAULTS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _defaults(cls: type) -> tuple[tuple[str, Any], ...]:
    if cls not in _DEFAULTS:
        _DEFAULTS[cls] = tuple(
            (f.name, f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default)
            for f in dataclasses.fields(cls)
        )
    return _DEFAULTS[cls]


@dataclass(frozen=True)
class Chunk:
    """A piece of work: samples ``start`` … ``stop - 1``, which share no file with any other chunk."""

    start: int
    stop: int
    payload: Any = None
    """Anything else that the kind's :meth:`CorpusKind.make` needs; must be picklable."""


@dataclass(frozen=True)
class MadeFile:
    """One file that the engine must write, with the truth about the samples in it."""

    path: str
    data: bytes | None
    """None: not an ordinary file (see ``special``). A file without permission has both."""
    records: tuple[SampleRecord, ...] = ()
    special: Special | None = None
    fault: Mapping[str, Any] | None = None
    """The fault of the whole file or shard, for its :class:`FileRecord`."""


class CorpusKind(abc.ABC):
    """One kind of corpus. A module of :mod:`badbatch.harness.corpus` named like the kind has its instance, ``KIND``.

    Kinds other than ``imagefolder`` put their files below ``data/``, so that a reader of ``*.jsonl`` or of a whole
    folder of Parquet does not read the manifest.
    """

    name: ClassVar[str]
    one_file_a_sample: ClassVar[bool] = False
    """True: the sample records contain the files' digests, and no ``files.badbatch`` is written."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions change the bytes or the decoders' results (``pillow``, ``pyarrow`` …)."""
    formats: ClassVar[tuple[str, ...]] = ()
    """The values that ``Recipe.format`` can have; the first is the default."""

    def check(self, recipe: Recipe) -> None:  # noqa: B027 - most kinds have nothing to refuse
        """Refuse what this kind cannot make, before anything is written.

        Raises:
            UserError: a setting does not fit, or a library is missing (say which extra to install).
        """

    @abc.abstractmethod
    def chunks(self, recipe: Recipe) -> Iterator[Chunk]:
        """The whole corpus in chunks of about half a second's work, lazily, in order of sample ids."""

    @abc.abstractmethod
    def make(self, recipe: Recipe, chunk: Chunk) -> Iterator[MadeFile]:
        """The chunk's files, damaged and judged. The result is the same in any process and order."""

    @abc.abstractmethod
    def undamaged(self, recipe: Recipe, sample: int) -> bytes:
        """The sample's own bytes as they were before the damage, made again from the recipe."""
