"""What must arrive, how often, and what must be counted: the only module that interprets a contract's policies."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from ...harness.contract.job import SAME_FORMAT, Contract
from ...harness.faults import Effect
from ...harness.sources.base import truth
from ...harness.sources.truth import Owed, Truth, Walk
from ...harness.trial.spec import TrialSpec


@dataclasses.dataclass(frozen=True)
class Expectation:
    """The model of one epoch of one trial: plan × contract × topology.

    Arrays have one entry for each sample, in order of the ids. Budgets are totals over all ranks of an epoch.
    """

    spec: TrialSpec
    contract: Contract

    @functools.cached_property
    def truth(self) -> Truth:
        """What the source knows about its samples."""
        return truth(self.spec)

    @functools.cached_property
    def owed(self) -> npt.NDArray[np.uint8]:
        """For each sample an :class:`Owed`."""
        return np.where(self.optional, Owed.OPTIONAL, self.truth.owed).astype(np.uint8)

    @functools.cached_property
    def odd(self) -> npt.NDArray[np.bool_]:
        """The legal oddities: good samples that a careless loader treats as damaged."""
        return self.truth.odd & ~self.optional

    @functools.cached_property
    def optional(self) -> npt.NDArray[np.bool_]:
        """Samples stored in a format that the loader declares not to accept: nothing is required for them."""
        chosen = np.zeros(self.spec.samples, np.bool_)
        if self.contract.formats is not None:
            taken = {SAME_FORMAT.get(ending, ending) for ending in self.contract.formats}
            for sample, ending in self.truth.endings.items():
                chosen[sample] = SAME_FORMAT.get(ending.lower(), ending.lower()) not in taken
        return chosen

    @property
    def lethal(self) -> npt.NDArray[np.bool_]:
        """Samples whose read kills or blocks its process: an error may report them, whatever the contract says."""
        return self.truth.lethal

    @property
    def damaged(self) -> npt.NDArray[np.bool_]:
        """Samples that must not arrive as good."""
        chosen: npt.NDArray[np.bool_] = self.owed == Owed.DAMAGED
        return chosen

    @property
    def good(self) -> npt.NDArray[np.bool_]:
        """Samples that must arrive."""
        chosen: npt.NDArray[np.bool_] = self.owed == Owed.GOOD
        return chosen

    @property
    def absent(self) -> npt.NDArray[np.bool_]:
        """Samples of which nothing is left."""
        chosen: npt.NDArray[np.bool_] = self.owed == Owed.ABSENT
        return chosen

    @property
    def unit(self) -> npt.NDArray[np.int64]:
        """For each sample the first sample of its group.

        One fault costs a whole group, and a loader can only report the group together.
        """
        return self.truth.unit

    @functools.cached_property
    def in_radius(self) -> npt.NDArray[np.bool_]:
        """Good samples that the contract's blast radius allows to lose: those of the files that contain anything damaged."""
        chosen = np.zeros(self.spec.samples, np.bool_)
        if self.contract.blast_radius not in ("shard", "file"):
            return chosen
        for _, first, count in self.truth.files:
            if np.any(self.owed[first : first + count] != Owed.GOOD):
                chosen[first : first + count] = True
        return chosen & self.good

    @property
    def pad_budget(self) -> int:
        """Extra arrivals that padding may cause: what makes the ranks' shares equal, or fills up their last batches."""
        if self.contract.tail not in ("pad", "pad-batch"):
            return 0
        size = self.spec.batch_size if self.contract.tail == "pad-batch" else 1
        return max(-known % (ranks * size) for known in self._known for ranks in self._ranks)

    @functools.cached_property
    def _ranks(self) -> frozenset[int]:
        """The numbers of ranks in the phases of the trial."""
        return frozenset(topology.ranks for topology in self.spec.topologies)

    @functools.cached_property
    def _known(self) -> tuple[int, ...]:
        """How many samples a loader may find: all, or all except some of those of which nothing is left.

        A loader that skips may have left out what is damaged on disk before it split the rest among the ranks.
        """
        samples = self.spec.samples
        if not self.truth.listed:
            return (samples,)
        if self.contract.on_damage == "skip":
            return tuple(range(samples - int(np.count_nonzero(self.owed != Owed.GOOD)), samples + 1))
        absent, optional = int(np.count_nonzero(self.absent)), int(np.count_nonzero(self.optional))
        return tuple({samples - fewer for fewer in (0, absent, optional, absent + optional)})

    @property
    def drop_budget(self) -> int:
        """Good samples that may be left out: the ranks' remainder, and with drop_last each rank's partial last batch.

        The samples of a rank are its own, not its workers': a partial batch of each worker is covered only where the contract
        declares ``short_batches="per-worker"``, since the number of workers must not change which samples arrive. That the
        batches are put together so in a probe is not enough.
        """
        return max(self._dropped_by(ranks) for ranks in self._ranks)

    def _dropped_by(self, ranks: int) -> int:
        samples, batch = self.spec.samples, self.spec.batch_size
        dropped = max(known % ranks for known in self._known) if self.contract.tail == "drop" else 0
        if not self.spec.drop_last:
            return dropped
        droppers = self._processes if self.per_worker and not self.per_worker_is_inferred else ranks
        if self.spec.plan or (droppers > ranks and self.truth.listed):
            # Skips shorten a share by a number that is not known in advance, and so does a split by files.
            return dropped + droppers * (batch - 1)
        padded = self.contract.tail in ("pad", "pad-batch")
        divisions = [[-(-samples // ranks)] * ranks] if padded else _divisions(samples - dropped, ranks)
        return dropped + max(sum(_most_left(share, droppers // ranks, batch) for share in shares) for shares in divisions)

    def collateral_budget(self, errors: int) -> int:
        """Good samples that may be lost with damaged ones, if ``errors`` errors reached the consumers.

        A batch that cannot be made loses its good samples too, but only if an error reports it. The same holds for a
        stream that ended with an error (:attr:`unreachable`). An error for a batch that is wholly damaged costs no good
        sample.
        """
        told = min(errors, self._reads_of(self.owed != Owed.GOOD))
        if self.contract.on_damage != "raise":
            told = min(told, self._reads_of(self.lethal))
        if self.contract.blast_radius == "batch":  # promised: no error needs to report it
            told = self._reads_of(self.owed != Owed.GOOD)
        return told * (self.spec.batch_size - 1) + (self.unreachable if told else 0)

    @property
    def unreachable(self) -> int:
        """Samples that no loader can reach after a read has killed or blocked the process that reads a stream.

        Only ``next()`` advances a stream, and ``next()`` is what died: a new process that starts over reaches the same
        sample again. In a stream that splits itself this ends the share of one process. In a stream that does not,
        every process reads every sample, so it ends all of them; each may have had an unfinished batch.
        """
        lethal = np.flatnonzero(self.lethal)
        if not len(lethal):
            return 0
        if self.truth.walk is Walk.SHARE:
            return min(len(lethal), self._processes) * -(-self.spec.samples // self._processes)
        if self.truth.walk is Walk.EVERY:
            return self.spec.samples - 1 - int(lethal[0]) + (self._processes - 1) * (self.spec.batch_size - 1)
        return 0

    @property
    def substitute_budget(self) -> int:
        """Errors that a loader which does not raise may still raise: one for each batch that may be wholly damaged."""
        if self.contract.on_damage != "substitute":
            return 0
        return int(np.count_nonzero(self.owed != Owed.GOOD)) + self.pad_budget

    @property
    def explicit_errors(self) -> int:
        """Errors that a loader which does not raise may still raise: one for each batch that may be wholly damaged."""
        return self._reads_of(self.owed != Owed.GOOD) // self._smallest_batch

    @property
    def _smallest_batch(self) -> int:
        """The size of the smallest partial batch with which the set, or the share of a rank or a process, may end."""
        samples, batch = self.spec.samples, self.spec.batch_size
        parts = (1, *self._ranks, self._processes)
        shares = {share for number in parts for share in (samples // number, -(-samples // number))}
        return min(share % batch or batch for share in shares)

    @property
    def short_batches(self) -> int:
        """Batches on one rank that skips may shorten: one for each read of a damaged sample."""
        return self._reads_of(self.owed != Owed.GOOD) if self.contract.replacement else int(np.count_nonzero(self.owed != Owed.GOOD))

    @property
    def per_worker(self) -> bool:
        """Whether each worker batches its own samples, so that each may end with a short batch."""
        return self.contract.short_batches == "per-worker" and self.spec.topology.workers > 0

    @property
    def per_worker_is_inferred(self) -> bool:
        """Whether that was seen in a probe and not declared: then it fails once, in trials that test nothing else."""
        return self.per_worker and "short_batches" in self.contract.inferred

    @property
    def error_budget(self) -> int:
        """Errors that may reach the consumers in one epoch.

        For a loader that raises: one for each damaged sample, and another where padding reads it on a second rank. The
        death or the hang of a process may be reported twice (by the process that saw it, and by the one that waited).
        """
        deaths = self._deaths
        if self.contract.on_damage == "raise":
            return self._reads_of(self.owed != Owed.GOOD) + deaths
        return 2 * deaths + self.explicit_errors + int(np.count_nonzero(self.truth.with_effect(Effect.UNPICKLABLE)))

    @property
    def _deaths(self) -> int:
        """Processes that die or hang: one for each lethal sample, except in a stream, where every process reads it."""
        lethal = self._reads_of(self.lethal)
        return lethal * self._processes if self.truth.walk is Walk.EVERY else lethal

    def _reads_of(self, which: npt.NDArray[np.bool_]) -> int:
        """How often samples of a kind are read in an epoch: each once, and again if padding repeats it on another rank.

        With replacement, one of them may be read at every draw.
        """
        number = int(np.count_nonzero(which))
        if number and self.contract.replacement:
            return self.spec.samples + self.pad_budget
        return number + self.pad_budget if number else 0

    @property
    def _processes(self) -> int:
        """Processes that read at the same time."""
        return max(topology.ranks * max(1, topology.workers) for topology in self.spec.topologies)

    @property
    def goes_on(self) -> bool:
        """Whether the epoch continues after an error."""
        if self.may_give_up:
            return False
        return self.contract.on_damage != "raise" or self.contract.after_error != "stop"

    @property
    def stop_is_inferred(self) -> bool:
        """Whether the stop was seen in the probe and not declared, or is not required: then a loader may continue."""
        return self.may_give_up or "after_error" in self.contract.inferred

    @property
    def skip_limit(self) -> int | None:
        """How many damaged samples in a row are skipped, by a loader that declares that it counts them; None: any number."""
        skips = self.contract.on_damage == "skip" and self.contract.skip_budget and not self.contract.replacement
        return self.spec.max_consecutive_skips if skips else None

    @property
    def may_give_up(self) -> bool:
        """Whether one of the readers may meet more damaged samples in a row than are skipped, so that an error ends its part.

        With several readers, each has a part of the samples, and those between two damaged ones may belong to another.
        """
        if self.skip_limit is None:
            return False
        in_order = self._processes == 1 and not self.spec.shuffle
        met = longest_run(self.damaged) if in_order else int(np.count_nonzero(self.damaged))
        return met > self.skip_limit

    @property
    def must_give_up(self) -> bool:
        """Whether one of the readers must meet more damaged samples in a row than are skipped, however they divide the samples.

        Among n readers, one has more than k of any ``n * k + 1`` samples in a row, and they are in a row for it too.
        """
        if self.skip_limit is None or self.spec.shuffle:
            return False
        return longest_run(self.damaged) > self.skip_limit * self._processes


def longest_run(chosen: npt.NDArray[np.bool_]) -> int:
    """The length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False]))))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _divisions(samples: int, parts: int) -> list[list[int]]:
    """The sizes of the parts into which samples are divided: by stride, and in blocks."""
    size = -(-samples // parts)
    return [
        [len(range(part, samples, parts)) for part in range(parts)],
        [max(0, min(size, samples - part * size)) for part in range(parts)],
    ]


def _most_left(share: int, workers: int, batch: int) -> int:
    """The maximum number of samples in partial batches, if this many workers divide a rank's share and batch their own part."""
    return max(sum(part % batch for part in division) for division in _divisions(share, workers))


def expect(spec: TrialSpec, contract: Contract | None = None) -> Expectation:
    """The expectation for a trial; its own contract unless another is given."""
    return Expectation(spec, spec.contract if contract is None else contract)
