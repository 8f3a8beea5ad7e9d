"""The closed account of every epoch: each sample has exactly one fate, and the sums match."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Fate(enum.IntEnum):
    """What happened to one sample in one epoch."""

    DELIVERED = 0  # once
    PADDED = 1  # more than once, as the padding of the ranks or drawing with replacement allows
    DUPLICATED = 2  # more than once, and nothing allows it
    MARKED = 3  # it arrived marked as missing
    RAISED = 4  # damaged, and reported by an error
    COLLATERAL = 5  # good, and lost in the batch of a damaged one that raised
    SKIPPED = 6  # not delivered, and reported
    SUBSTITUTED = 7  # damaged, and another arrived in its place
    DROPPED = 8  # left out because of drop_last or tail="drop", or not drawn
    UNDELIVERED = 9  # not delivered before the epoch was stopped, left or cut
    IN_DOUBT = 10  # a process died while it read it
    LOST = 11  # not delivered, and nothing accounts for it


class Stop(enum.IntEnum):
    """How one rank's epoch ended."""

    END = 0  # StopIteration
    BROKE = 1  # the consumer left it on purpose
    CAPPED = 2  # the consumer gave up
    NEVER_BEGAN = 3  # iter() raised, or the loader could not be built
    CUT = 4  # the trial was ended, or the process died, in the middle of it


@dataclasses.dataclass(frozen=True, eq=False)
class Epoch:
    """The account of one epoch over all ranks. Arrays have one entry for each sample, unless noted."""

    number: int
    fate: npt.NDArray[np.uint8]
    arrivals: Ids
    """How often each sample arrived, marked or not."""
    wrong: Ids
    """How often it arrived with content that is not its own."""
    marked: Ids
    fabricated: Ids
    """The ids that arrived but do not exist in the source; the length is not the number of samples."""
    unnamed: int
    """Arrivals marked as missing, without an id."""
    nameless: int
    """Arrivals without an id that may be legal oddities without one, like pictures of one pixel."""
    unsure: Mask
    """Legal oddities without ids, if fewer of them arrived than are missing: it is not known which arrived."""
    reported: Ids
    """How often each sample was reported as skipped, by id."""
    reported_total: int | None
    """How many skips were reported in total; None: the loader reported nothing, and has no way to."""
    reported_strangers: int
    """Reported skips whose ids do not exist in the source."""
    stops: tuple[Stop, ...]
    """One for each rank."""
    calls: tuple[int, ...]
    """Calls of next(), one number for each rank."""
    batches: tuple[int, ...]
    errors: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether every rank reached StopIteration, so that what is missing is really missing."""
        return all(stop is Stop.END for stop in self.stops)

    @property
    def over(self) -> bool:
        """Whether every rank reached StopIteration, or an error before its first call of next()."""
        return all(
            stop is Stop.END or (stop is Stop.NEVER_BEGAN and errors > 0)
            for stop, errors in zip(self.stops, self.errors, strict=True)
        )

    @property
    def extra(self) -> Ids:
        """Arrivals beyond the first."""
        return np.maximum(self.arrivals - 1, 0)

    def having(self, *fates: Fate) -> Ids:
        """The ids of the samples with one of these fates."""
        found: Ids = np.flatnonzero(np.isin(self.fate, fates))
        return found

    def counts(self) -> dict[str, int]:
        """How many samples have each fate, by its lower-case name; the sum is the number of samples."""
        counted = np.bincount(self.fate, minlength=len(Fate))
        return {fate.name.lower(): int(counted[fate]) for fate in Fate}

    @property
    def closes(self) -> bool:
        """Whether the sums match: one fate for each sample, and each arrival accounted for."""
        return sum(self.counts().values()) == len(self.fate) and bool(np.all(self.arrivals >= np.maximum(self.wrong, self.marked)))


@dataclasses.dataclass(frozen=True, eq=False)
class Ledger:
    """The accounts of all epochs of a trial."""

    epochs: tuple[Epoch, ...]

    @property
    def first(self) -> Epoch:
        """Epoch 0. It always exists, possibly as an empty account."""
        return self.epochs[0]
