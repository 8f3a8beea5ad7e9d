"""What a source knows about its samples. Everything that judges a history uses this, and not the kind of source."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..contract.job import FORMATS
from ..corpus.stored import Stored
from ..faults.base import Effect
from ..trial.spec import TrialSpec

Mask = npt.NDArray[np.bool_]


class Owed(enum.IntEnum):
    """What a loader owes for one sample."""

    GOOD = 0  # it must arrive, as it was written
    DAMAGED = 1  # it must not arrive as good; the contract says how the loader reports it
    EITHER = 2  # it may arrive as it was written, or be treated as damaged, but must be one of the two
    OPTIONAL = 4  # nothing is required: the contract says that the loader does not accept such samples
    ABSENT = 3  # nothing of it is left: a loader that lists the folder never sees it, one with an index must report it


class Walk(enum.Enum):
    """How the processes of a loader reach the samples."""

    INDEX = "index"  # any process reads any sample
    EVERY = "every"  # each process reads all samples, in order
    SHARE = "share"  # each process reads its own share, in order


@dataclasses.dataclass(frozen=True)
class Truth:
    """What is known about the samples of a trial. Arrays have one entry for each sample, in order of the ids.

    This class implements samples in memory, which are independent of each other.
    """

    spec: TrialSpec
    walk: Walk = Walk.INDEX

    @functools.cached_property
    def owed(self) -> npt.NDArray[np.uint8]:
        """For each sample an :class:`Owed`."""
        owed = np.full(self.spec.samples, Owed.GOOD, np.uint8)
        for sample, fault in self.spec.plan.items():
            if sample < self.spec.samples:
                owed[sample] = Owed.EITHER if fault.may_recover else _OWED[fault.effect]
        return owed

    @functools.cached_property
    def odd(self) -> Mask:
        """The legal oddities: good samples that a careless loader treats as damaged."""
        return self.with_effect(Effect.LEGAL)

    @property
    def anonymous(self) -> Mask:
        """The samples that may arrive without an id, since nothing in them shows which they are."""
        return np.zeros(self.spec.samples, np.bool_)

    @property
    def contested(self) -> Mask:
        """The samples on which decoders disagree: any of their results may arrive."""
        return np.zeros(self.spec.samples, np.bool_)

    @functools.cached_property
    def lethal(self) -> Mask:
        """Samples whose read kills or blocks its process: an error may report them, whatever the contract says."""
        return self.with_effect(Effect.CRASH, Effect.STALL)

    @functools.cached_property
    def unit(self) -> npt.NDArray[np.int64]:
        """For each sample the first sample of its group.

        One fault costs a whole group, and a loader can only report the group together.
        """
        return np.arange(self.spec.samples)

    @property
    def files(self) -> tuple[tuple[str, int, int], ...]:
        """(path, first sample, number of samples) of every file, in order of the samples; empty if there are no files."""
        return ()

    @property
    def groups(self) -> tuple[int, ...]:
        """The first sample of every row group, if the files have row groups."""
        return ()

    @property
    def idle(self) -> str:
        """Why no fault had an effect, if that was known before the trial began; empty: it was not."""
        return ""

    @property
    def reads_recorded(self) -> bool:
        """Whether every read is recorded, so that a sample without a record was not read."""
        return True

    @property
    def raises(self) -> bool:
        """Whether the source raises the error of a damaged sample, so that the record contains the original error."""
        return True

    @property
    def listed(self) -> bool:
        """Whether a loader finds the samples by listing a folder, so that it may know of fewer than the source has."""
        return False

    @property
    def separable(self) -> bool:
        """Whether a sample has fields that a loader can read or leave out one by one."""
        return False

    @property
    def pipes(self) -> Mask:
        """The samples with a named pipe at their path: a loader that lists only regular files never sees them."""
        return np.zeros(self.spec.samples, np.bool_)

    @property
    def endings(self) -> Mapping[int, str]:
        """From a sample to the extension of its picture's file, without the dot, if it is known and may not be ``jpg``."""
        return {}

    def path_of(self, sample: int) -> str:
        """The file that contains a sample, or should contain it; empty if there are no files."""
        return next((path for path, first, count in self.files if first <= sample < first + count), "")

    def with_effect(self, *effects: Effect) -> Mask:
        """The samples whose fault has one of these effects."""
        chosen = np.zeros(self.spec.samples, np.bool_)
        for sample, fault in self.spec.plan.items():
            if sample < self.spec.samples and fault.effect in effects:
                chosen[sample] = True
        return chosen


@dataclasses.dataclass(frozen=True)
class StoredTruth(Truth):
    """What is known about the samples of a corpus."""

    @property
    def _stored(self) -> Stored:
        return self.spec.stored if self.spec.stored is not None else Stored("")

    @functools.cached_property
    def owed(self) -> npt.NDArray[np.uint8]:
        owed = np.full(self.spec.samples, Owed.GOOD, np.uint8)
        for sample, state in self._stored.states:
            owed[sample] = _OWED_ON_DISK[state]
        owed[self.lethal] = Owed.DAMAGED  # whatever decoders outside the trial say about it
        return owed

    @functools.cached_property
    def odd(self) -> Mask:
        chosen = np.zeros(self.spec.samples, np.bool_)
        chosen[[sample for sample, state in self._stored.states if state == "odd"]] = True
        return chosen

    @functools.cached_property
    def anonymous(self) -> Mask:
        nameless = self._stored.nameless
        if nameless is None:  # a trial that an earlier version stored
            return self.odd
        chosen = np.zeros(self.spec.samples, np.bool_)
        chosen[list(nameless)] = True
        return chosen

    @functools.cached_property
    def pipes(self) -> Mask:
        chosen = np.zeros(self.spec.samples, np.bool_)
        chosen[[sample for sample, fault in self.spec.plan.items() if getattr(fault, "special", None) == "fifo"]] = True
        return chosen

    @functools.cached_property
    def endings(self) -> Mapping[int, str]:
        found = dict(self._stored.endings)
        if len(self.files) == self.spec.samples:  # each file contains one sample
            found.update((first, path.rpartition(".")[2]) for path, first, _ in self.files)
        return {sample: ending for sample, ending in found.items() if ending.lower() in FORMATS}

    @functools.cached_property
    def contested(self) -> Mask:
        chosen: Mask = self.owed == Owed.EITHER
        return chosen

    @functools.cached_property
    def unit(self) -> npt.NDArray[np.int64]:
        # The samples that the fault of a whole file damaged, and neighbours damaged by the same fault: a loader that
        # cannot open a file cannot know how many samples it contained.
        unit = np.arange(self.spec.samples)
        firsts: dict[tuple[str, object], int] = {}
        for sample, _ in self._stored.states:
            fault = self.spec.plan.get(sample)
            if fault is None or self.owed[sample] == Owed.GOOD:
                continue
            path = self.path_of(sample)
            if getattr(fault, "level", "sample") in ("file", "shard"):
                unit[sample] = firsts.setdefault((path, fault), sample)
            elif self.spec.plan.get(sample - 1) == fault and self.path_of(sample - 1) == path:
                unit[sample] = unit[sample - 1]
        return unit

    @property
    def files(self) -> tuple[tuple[str, int, int], ...]:
        return self._stored.files

    @property
    def groups(self) -> tuple[int, ...]:
        return self._stored.groups

    @property
    def idle(self) -> str:
        return self._stored.idle[0][1] if self._stored.idle and not self.spec.plan else ""

    @property
    def reads_recorded(self) -> bool:
        return False  # opens by C libraries are not recorded

    @property
    def raises(self) -> bool:
        return False

    @property
    def listed(self) -> bool:
        return True

    @property
    def separable(self) -> bool:
        return True


_OWED = {
    Effect.ERROR: Owed.DAMAGED,
    Effect.VALUE: Owed.DAMAGED,
    Effect.STALL: Owed.DAMAGED,
    Effect.CRASH: Owed.DAMAGED,
    Effect.UNPICKLABLE: Owed.EITHER,
    Effect.TRANSIENT: Owed.EITHER,
    Effect.LEGAL: Owed.GOOD,
    Effect.SLOW: Owed.GOOD,
}

_OWED_ON_DISK = {
    "good": Owed.GOOD,
    "odd": Owed.GOOD,
    "slow": Owed.GOOD,
    "damaged": Owed.DAMAGED,
    "hangs": Owed.DAMAGED,
    "contested": Owed.EITHER,
    "missing": Owed.ABSENT,
}
