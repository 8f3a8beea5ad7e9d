"""Makes the account of each epoch: gives every sample its fate."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Content, Kind, Where
from ...harness.trial.history import Events, History
from .expectation import Expectation
from .ledger import Epoch, Fate, Ids, Ledger, Mask, Stop
from .stops import before_the_damage, owed_despite_stop, stopped

_DURING_EPOCH = (Where.NEXT, Where.ITER, Where.OUTSIDE)
_READING = (Kind.READ, Kind.READ_DONE, Kind.FAULT, Kind.SKIPPED)


def account(history: History, expected: Expectation) -> Ledger:
    """Make the ledger of a trial."""
    return Ledger(tuple(_Accountant(history, expected, number).epoch() for number in range(history.spec.epochs)))


def readings(history: History, epoch: int, *kinds: Kind) -> Events:
    """The readers' events of a logical epoch: on each rank, between the beginning of each of its segments and the next beginning.

    Only of these kinds, if any are given.

    Readers do not know the epoch, so reads ahead for the next epoch, or late reads for the last, may be counted
    wrongly. If there is one epoch, all reads belong to it.
    """
    if history.spec.epochs == 1:
        return history.of(*(kinds or _READING))
    parts = []
    for rank in range(history.spec.most_ranks):
        mine = history.of(*(kinds or _READING), rank=rank)
        begun = history.of(Kind.EPOCH, rank=rank)
        starts = np.append(begun["time"], np.iinfo(np.int64).max)
        starts[:1] = np.iinfo(np.int64).min
        for number in np.flatnonzero(history.in_epoch(begun, epoch)):
            parts.append(mine[(mine["time"] >= starts[number]) & (mine["time"] < starts[number + 1])])
    return np.concatenate(parts) if parts else history.events[:0]


def unlisted_pipes(history: History, expected: Expectation) -> Mask:
    """The named pipes without any record, if opens are recorded: the loader lists only regular files, as libraries do."""
    pipes = expected.truth.pipes
    if not pipes.any() or not len(history.of(Kind.READ)):
        return np.zeros_like(pipes)
    met = history.of(Kind.READ, Kind.FAULT, Kind.ARRIVED, Kind.SKIPPED)["sample"]
    return pipes & ~np.isin(np.arange(history.spec.samples), met)


class _Accountant:
    """Makes the account of one epoch."""

    def __init__(self, history: History, expected: Expectation, number: int) -> None:
        self._history = history
        self._expected = expected
        self._number = number
        self._samples = history.spec.samples
        ranks = [history.spec.in_phase(phase).topology.ranks for phase, _ in history.logical_epochs[number]]
        self._ranks = range(max(ranks))
        self._last_ranks = ranks[-1]

    def _of(self, kind: Kind, rank: int | None = None) -> Events:
        """The consumers' events of this epoch."""
        return self._history.of(kind, epoch=self._number, rank=rank)

    def _read(self, kind: Kind) -> Events:
        """The readers' events of this epoch."""
        return readings(self._history, self._number, kind)

    def _by_rank(self, events: Events) -> tuple[int, ...]:
        return tuple(int(count) for count in np.bincount(events["rank"], minlength=len(self._ranks)))

    def epoch(self) -> Epoch:
        arrived = self._of(Kind.ARRIVED)
        flags = arrived["flags"]
        ids = self._contested_without_ids(arrived["sample"], flags)
        known = (ids >= 0) & (ids < self._samples)
        is_marked = (flags & Content.MARKED) != 0
        arrivals = self._count(ids[known])
        # Only as many as there are oddities on disk that have no id and did not arrive by name; any other is
        # fabricated.
        candidates = self._expected.truth.anonymous & (arrivals == 0)
        is_nameless = (ids == -1) & (flags == Content.UNCHECKED)
        is_nameless[np.flatnonzero(is_nameless)[np.count_nonzero(candidates) :]] = False
        nameless = int(np.count_nonzero(is_nameless))
        wrong = self._count(ids[known & ((flags & Content.WRONG) != 0)])
        marked = self._count(ids[known & is_marked])
        raised = self._of(Kind.RAISED)
        # A loader that opens its files when it is built reads the damage there: that is the error of the epoch.
        built = (Where.FACTORY,) if self._damaged else ()
        raised = raised[np.isin(raised["flags"], (*_DURING_EPOCH, *built))]
        reported, total, strangers = self._reported()
        stops = tuple(self._stop(rank) for rank in self._ranks)
        epoch = Epoch(
            number=self._number,
            fate=np.full(self._samples, Fate.LOST, np.uint8),
            arrivals=arrivals,
            wrong=wrong,
            marked=marked,
            fabricated=ids[~known & ~is_marked & ~is_nameless],
            unnamed=int(np.count_nonzero(~known & is_marked)),
            nameless=nameless,
            unsure=candidates & (0 < nameless < np.count_nonzero(candidates)),
            reported=reported,
            reported_total=total,
            reported_strangers=strangers,
            stops=stops,
            calls=self._by_rank(self._of(Kind.ASK)),
            batches=self._by_rank(self._of(Kind.GOT)),
            errors=self._by_rank(raised),
        )
        return dataclasses.replace(epoch, fate=self._fates(epoch))

    def _contested_without_ids(self, ids: Ids, flags: npt.NDArray[np.uint8]) -> Ids:
        """The ids, if pictures without a readable id are contested samples that nobody skipped.

        What any decoder returns for a contested picture may arrive, and often the mark is what was lost.
        """
        contested = np.flatnonzero(self._expected.truth.contested)
        if not len(contested):
            return ids
        unread = np.flatnonzero((ids == -1) & ((flags & Content.WRONG) != 0))
        open_ones = contested[~np.isin(contested, ids) & ~np.isin(contested, self._read(Kind.SKIPPED)["sample"])]
        number = min(len(unread), len(open_ones))
        ids = ids.copy()
        ids[unread[:number]] = open_ones[:number]
        return ids

    def _count(self, ids: Ids) -> Ids:
        return np.bincount(ids, minlength=self._samples).astype(np.int64) if self._samples else np.zeros(0, np.int64)

    def _stop(self, rank: int) -> Stop:
        """How the epoch ended on a rank; one that is not in the last phase of the epoch has nothing more to do."""
        if rank >= self._last_ranks:
            return Stop.END
        for kind, stop in ((Kind.END, Stop.END), (Kind.BROKE, Stop.BROKE), (Kind.CAPPED, Stop.CAPPED)):
            if len(self._of(kind, rank)):
                return stop
        began = len(self._of(Kind.ASK, rank)) > 0
        if began or not len(self._of(Kind.EPOCH_DONE, rank)):
            failed = np.any(self._history.of(Kind.RAISED, rank=rank)["flags"] == Where.FACTORY)
            return Stop.NEVER_BEGAN if failed and not began else Stop.CUT
        return Stop.NEVER_BEGAN

    def _reported(self) -> tuple[Ids, int | None, int]:
        """Skips by id, their total, and those of unknown ids: from on_skip, otherwise from ``loader.skipped``."""
        calls = self._read(Kind.SKIPPED)["sample"]
        entries = self._of(Kind.REPORTED)
        if len(calls) == 0 and len(entries) == 0:
            return np.zeros(self._samples, np.int64), None, 0
        if len(calls):
            ids, total = calls, len(calls)
        else:
            ids, total = self._attribute(entries)
        known = (ids >= 0) & (ids < self._samples)
        return self._count(ids[known]), total, int(np.count_nonzero(~known & (ids != -1)))  # -1: the loader cannot tell which sample it was

    def _attribute(self, entries: Events) -> tuple[Ids, int]:
        """What ``loader.skipped`` says about this epoch.

        If it counts on over epochs, the earlier ones are subtracted.
        """
        total_lines = entries["flags"] == 1
        total = int(entries[total_lines]["aux"].sum())
        ids: Ids = entries[~total_lines]["sample"]
        if self._number:
            before = self._history.of(Kind.REPORTED, epoch=self._number - 1)
            earlier_lines = before["flags"] == 1
            earlier = int(before[earlier_lines]["aux"].sum())
            if total >= 2 * earlier > 0:
                old = list(before[~earlier_lines]["sample"])
                new = list(ids)
                for sample in old:
                    if sample in new:
                        new.remove(sample)
                return np.array(new, np.int64), total - earlier
        return ids, total

    def _fates(self, epoch: Epoch) -> npt.NDArray[np.uint8]:
        expected = self._expected
        fate = epoch.fate.copy()
        fate[epoch.arrivals > 0] = Fate.DELIVERED
        fate[epoch.marked > 0] = Fate.MARKED
        self._extras(epoch, fate)
        missing = epoch.arrivals == 0
        fate[missing & (epoch.reported > 0)] = Fate.SKIPPED
        not_good = expected.owed != Owed.GOOD
        if expected.contract.replacement:  # only the number of samples is owed
            fate[missing & (expected.good | ~np.isin(np.arange(self._samples), self._history.struck))] = Fate.DROPPED
        told = np.isin(expected.unit, expected.unit[not_good & (epoch.reported > 0)])
        fate[missing & not_good & told] = Fate.SKIPPED  # together with a sample, everything else that its fault cost
        if epoch.whole:
            fate[(fate == Fate.LOST) & unlisted_pipes(self._history, expected)] = Fate.DROPPED
        self._first(fate, expected.truth.anonymous, Fate.DELIVERED, epoch.nameless)
        self._reported_without_ids(epoch, fate)
        self._marked_without_ids(epoch, fate)
        self._substituted(epoch, fate)
        errors = sum(epoch.errors)
        self._first(fate, not_good, Fate.RAISED, errors * self._history.spec.batch_size)
        if not epoch.whole and not (self._damaged and epoch.over):
            self._cut_short(epoch, fate)
            return fate
        fate[expected.in_radius & np.isin(fate, (Fate.LOST, Fate.SKIPPED))] = Fate.COLLATERAL
        reads = self._read(Kind.READ)
        stops = stopped(self._history, epoch, expected)
        spared = before_the_damage(self._history, epoch, expected, reads) if stops else np.zeros(self._samples, np.bool_)
        self._nearest_collateral(fate, expected.collateral_budget(errors), spared)
        if stops:
            missing = (fate == Fate.LOST) & expected.good
            owed = owed_despite_stop(self._history, epoch, expected, reads, missing)
            fate[(fate == Fate.LOST) & ~owed] = Fate.UNDELIVERED
            return fate
        self._first(fate, expected.good | self._untouched, Fate.DROPPED, expected.drop_budget, last=True)
        return fate

    @property
    def _damaged(self) -> bool:
        """Whether anything is damaged, so that an error is expected."""
        return bool(np.any(self._expected.owed != Owed.GOOD))

    @property
    def _untouched(self) -> Mask:
        """Samples whose fault had no effect: a damaged one may be left out with the remainder like any other."""
        if not self._expected.truth.reads_recorded:
            return np.zeros(self._samples, np.bool_)  # faults may have had an effect without a record
        return ~np.isin(np.arange(self._samples), self._history.struck)

    def _extras(self, epoch: Epoch, fate: npt.NDArray[np.uint8]) -> None:
        budget = self._expected.pad_budget + self._expected.substitute_budget
        several = np.flatnonzero(epoch.extra)
        if self._expected.contract.replacement:
            fate[several] = Fate.PADDED
            return
        spent = np.cumsum(epoch.extra[several])
        fate[several[spent <= budget]] = Fate.PADDED
        fate[several[spent > budget]] = Fate.DUPLICATED

    def _first(self, fate: npt.NDArray[np.uint8], which: Mask, new: Fate, budget: int, last: bool = False) -> None:
        """Give up to ``budget`` of the samples that are still lost a fate that accounts for them.

        What one fault costs together counts as one. Samples of which nothing is left come last: they need not be
        reported.
        """
        candidates = np.flatnonzero((fate == Fate.LOST) & which)
        if last:
            candidates = candidates[::-1]
        candidates = candidates[np.argsort((self._expected.absent | self._expected.optional)[candidates], kind="stable")]
        units = list(dict.fromkeys(self._expected.unit[candidates].tolist()))[:budget]
        fate[candidates[np.isin(self._expected.unit[candidates], units)]] = new

    def _reported_without_ids(self, epoch: Epoch, fate: npt.NDArray[np.uint8]) -> None:
        """A count without ids accounts for the same number of damaged samples."""
        if epoch.reported_total is None:
            return
        anonymous = epoch.reported_total - int(epoch.reported.sum()) - epoch.reported_strangers
        self._first(fate, self._expected.owed != Owed.GOOD, Fate.SKIPPED, max(0, anonymous))

    def _marked_without_ids(self, epoch: Epoch, fate: npt.NDArray[np.uint8]) -> None:
        if self._expected.contract.on_damage == "mark":
            self._first(fate, self._expected.owed != Owed.GOOD, Fate.MARKED, epoch.unnamed)

    def _substituted(self, epoch: Epoch, fate: npt.NDArray[np.uint8]) -> None:
        if self._expected.contract.on_damage != "substitute":
            return
        replaced = (epoch.arrivals == 0) & (self._expected.owed != Owed.GOOD) & ~self._expected.optional
        stands_in = int(epoch.extra.sum())
        candidates = np.flatnonzero(replaced)
        candidates = candidates[np.argsort(epoch.reported[candidates] == 0, kind="stable")]  # what was reported is replaced first
        chosen = candidates[:stands_in]
        fate[chosen] = Fate.SUBSTITUTED

    def _cut_short(self, epoch: Epoch, fate: npt.NDArray[np.uint8]) -> None:
        if Stop.CUT in epoch.stops:
            begun = self._count_known(self._read(Kind.READ)["sample"])
            done = self._count_known(self._read(Kind.READ_DONE)["sample"])
            fate[(fate == Fate.LOST) & (begun > done)] = Fate.IN_DOUBT
        fate[fate == Fate.LOST] = Fate.UNDELIVERED

    def _count_known(self, ids: Ids) -> Ids:
        return self._count(ids[(ids >= 0) & (ids < self._samples)])

    def _nearest_collateral(self, fate: npt.NDArray[np.uint8], budget: int, spared: Mask) -> None:
        """The good samples lost with a damaged one: those that its process read next to it, then the nearest by id."""
        lost = np.flatnonzero((fate == Fate.LOST) & self._expected.good & ~spared)
        if not len(lost) or budget <= 0:
            return
        told = np.flatnonzero(fate == Fate.RAISED)
        if self._expected.contract.blast_radius == "batch":
            told = np.flatnonzero(self._expected.owed != Owed.GOOD)
        if not len(told):
            return
        after = np.searchsorted(told, lost)
        above = np.abs(told[np.minimum(after, len(told) - 1)] - lost)
        below = np.abs(lost - told[np.maximum(after - 1, 0)])
        distance = np.minimum(above, below) + self._samples
        samples, steps = self._read_together(told)
        places = np.minimum(np.searchsorted(lost, samples), len(lost) - 1)
        found = lost[places] == samples
        np.minimum.at(distance, places[found], steps[found])
        fate[lost[np.argsort(distance, kind="stable")[:budget]]] = Fate.COLLATERAL

    def _read_together(self, told: Ids) -> tuple[Ids, Ids]:
        """Samples read by a process that read a damaged one, within a batch's length of it, with their distances."""
        reads = self._read(Kind.READ)
        reach = self._history.spec.batch_size - 1
        steps = np.arange(-reach, reach + 1)
        samples, distances = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for pid in np.unique(reads["pid"][np.isin(reads["sample"], told)]):
            mine = reads["sample"][reads["pid"] == pid]
            near = np.flatnonzero(np.isin(mine, told))[:, None] + steps
            within = (near >= 0) & (near < len(mine))
            samples.append(mine[near[within]])
            distances.append(np.broadcast_to(np.abs(steps), near.shape)[within])
        return np.concatenate(samples), np.concatenate(distances)
