"""A failing trial as the rules of diagnoses see it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...harness.faults import Effect
from ...harness.sources.truth import Owed
from ...harness.trial import endings
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import Events, History
from ..judging.accounting import readings
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Fate, Ledger, Stop
from ..judging.refused import may_refuse, refusals

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

READS_WRONGLY = (Effect.ERROR, Effect.VALUE, Effect.TRANSIENT)
"""Effects after which the reading process lives and continues."""

_LOOKED_AT = 500  # faults: a pattern shows in the first of them, and rules that look at each stay fast
_OF_WHOLE_EPOCHS = ("full-batches", "honest-length", "ranks-in-step")
_MISSING = (Fate.LOST, Fate.UNDELIVERED, Fate.IN_DOUBT, Fate.DROPPED)


class Case:
    """A failing trial, as the rules see it: what was read by whom, what arrived, what was raised.

    The rules look at one epoch. It is the first; for ``fresh-epoch`` the first later one that is not whole, for
    ``resume-exact`` the first that is not; if the first ended with a break and later ones are judged, the one after it.
    """

    def __init__(self, check: str, history: History, ledger: Ledger, expected: Expectation) -> None:
        self.check = check
        self.history = history
        self.ledger = ledger
        self.expected = expected
        self.spec = history.spec

    @functools.cached_property
    def epoch(self) -> Epoch:
        """The account of the epoch in question."""
        first, *later = self.ledger.epochs
        if self.check == "fresh-epoch":
            return next((epoch for epoch in later if np.any(epoch.arrivals != 1)), first)
        if self.check == "resume-exact":
            judged = (epoch for epoch in self.ledger.epochs if not self._may_be_refused(epoch))
            return next((epoch for epoch in judged if (self.never_came(epoch) | (epoch.fate == Fate.DUPLICATED)).any()), first)
        return later[0] if later and self.check in _OF_WHOLE_EPOCHS and Stop.BROKE in first.stops else first

    def never_came(self, epoch: Epoch) -> Mask:
        """The good samples that did not arrive in an epoch, except the collateral of its errors."""
        never: Mask = np.isin(epoch.fate, (Fate.LOST, Fate.UNDELIVERED)) & (self.expected.owed == Owed.GOOD)
        return never

    @functools.cached_property
    def refusals(self) -> dict[int, str]:
        """From a phase that could not load its state to what raised an error."""
        return refusals(self.history)

    def _may_be_refused(self, epoch: Epoch) -> bool:
        phase, _ = self.history.logical_epochs[epoch.number][-1]
        return phase in self.refusals and may_refuse(self.expected, phase)

    @functools.cached_property
    def arrived(self) -> Events:
        """The arrivals of samples that the source has."""
        found = self.history.of(Kind.ARRIVED, epoch=self.epoch.number)
        inside: Events = found[(found["sample"] >= 0) & (found["sample"] < self.spec.samples)]
        return inside

    @functools.cached_property
    def _readings(self) -> Events:
        return readings(self.history, self.epoch.number)

    def _read(self, kind: Kind) -> Events:
        found: Events = self._readings[self._readings["kind"] == kind]
        inside: Events = found[(found["sample"] >= 0) & (found["sample"] < self.spec.samples)]
        return inside

    @functools.cached_property
    def reads(self) -> Events:
        """The beginnings of reads, in order."""
        return self._read(Kind.READ)

    @functools.cached_property
    def done(self) -> Events:
        """The ends of reads; flags 1: it raised."""
        return self._read(Kind.READ_DONE)

    @functools.cached_property
    def faults(self) -> Events:
        """The moments at which a fault took effect."""
        return self._read(Kind.FAULT)

    def struck(self, *effects: Effect) -> Events:
        """The faults that took effect and have one of these effects; only the first of them, if there are very many."""
        plan = self.spec.plan
        samples = [sample for sample in np.unique(self.faults["sample"]) if plan[int(sample)].effect in effects]
        found: Events = self.faults[np.isin(self.faults["sample"], samples)]
        return found[:_LOOKED_AT]

    def raised(self, rank: int | None = None) -> Events:
        """The errors that reached the consumer while it iterated."""
        found = self.history.of(Kind.RAISED, epoch=self.epoch.number, rank=rank)
        during: Events = found[np.isin(found["flags"], (Where.NEXT, Where.ITER, Where.OUTSIDE))]
        return during

    @functools.cached_property
    def consumers(self) -> dict[int, int]:
        """From rank to the pid of its consumer."""
        own = self.history.of(Kind.BUILDING, Kind.EPOCH, Kind.ASK)
        return {int(rank): int(own[own["rank"] == rank]["pid"][0]) for rank in np.unique(own["rank"])}

    def in_worker(self, events: Events) -> Mask:
        """For each event of a reader, whether another process than the consumer wrote it."""
        consumers = np.array([self.consumers.get(rank, -1) for rank in range(self.spec.most_ranks)])
        elsewhere: Mask = events["pid"] != consumers[events["rank"]]
        return elsewhere

    def reader(self, event: np.void) -> str:
        """Who wrote an event of a reader: ``worker 0``, ``worker 1 of rank 0``, ``the consumer's own process``."""
        rank, pid, worker = int(event["rank"]), int(event["pid"]), int(event["worker"])
        of_rank = f" of rank {rank}" if self.ranks > 1 else ""
        if self.consumers.get(rank) == pid:
            thread = "a thread of " if self.in_thread(event) else ""
            return f"{thread}the consumer's own process{of_rank}"
        if worker < 0:
            pids, first = np.unique(self.reads[self.reads["rank"] == rank]["pid"], return_index=True)
            order = [int(other) for other in pids[np.argsort(first)] if other != self.consumers.get(rank)]
            worker = order.index(pid) if pid in order else len(order)
        return f"worker {worker}{of_rank}"

    @property
    def ranks(self) -> int:
        """The number of ranks of the epoch in question."""
        return len(self.epoch.stops)

    @property
    def workers(self) -> int:
        """The number of workers of each rank that the loader should use."""
        return self.spec.topology.workers

    def mask(self, samples: Ids) -> Mask:
        """A mask of these ids, one entry for each sample."""
        found = np.zeros(self.spec.samples, np.bool_)
        found[samples] = True
        return found

    @functools.cached_property
    def lost(self) -> Mask:
        """The good samples that did not arrive and are not collateral."""
        found: Mask = ~np.isin(self.expected.owed, (Owed.DAMAGED, Owed.OPTIONAL)) & np.isin(self.epoch.fate, _MISSING)
        return found

    @functools.cached_property
    def missing(self) -> Mask:
        """The damaged samples that neither arrived in any form nor were reported."""
        epoch = self.epoch
        gone: Mask = ~np.isin(self.expected.owed, (Owed.GOOD, Owed.OPTIONAL)) & (epoch.arrivals == 0) & (epoch.reported == 0)
        return gone

    @functools.cached_property
    def gone(self) -> Mask:
        """The good samples that are lost, and the damaged ones that nobody read and that no error accounts for."""
        unread: Mask = self.missing & ~self.read & np.isin(self.epoch.fate, _MISSING)
        return self.lost | unread

    @functools.cached_property
    def read(self) -> Mask:
        """The samples that some process began to read."""
        return self.mask(self.reads["sample"])

    @functools.cached_property
    def read_whole(self) -> Mask:
        """The samples that were read without an error."""
        return self.mask(self.done[self.done["flags"] == 0]["sample"])

    @property
    def endings(self) -> Iterator[tuple[int, Stop]]:
        """Rank, and how its epoch ended."""
        yield from enumerate(self.epoch.stops)

    @functools.cached_property
    def ends_with(self) -> np.void | None:
        """The error after which no batch arrived on its rank and the epoch ended, although the contract says that it continues."""
        if not self.expected.goes_on:
            return None
        for rank, stop in self.endings:
            raised = self.raised(rank)
            got = self.history.of(Kind.GOT, epoch=self.epoch.number, rank=rank)["time"]
            last = raised[raised["time"] > (got.max() if len(got) else -1)]
            if stop is Stop.END and len(last):
                found: np.void = last[0]
                return found
        return None

    def waits_for_ever(self, rank: int) -> bool:
        """Whether the consumer of a rank was in a call of the loader when the trial was cut."""
        if self.epoch.stops[rank] is not Stop.CUT or self.history.ended.cut not in endings.HUNG:
            return False
        mine = self.history.of(
            Kind.EPOCH, Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, Kind.WAITED, epoch=self.epoch.number, rank=rank
        )
        return bool(len(mine)) and int(mine[-1]["kind"]) in (Kind.ASK, Kind.EPOCH)

    def waits(self, rank: int) -> Iterator[tuple[float, np.void]]:
        """For each call of next() that came to an end: the seconds that it took, and its answer."""
        asked: np.void | None = None
        for event in self.history.of(Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, epoch=self.epoch.number, rank=rank):
            if event["kind"] == Kind.ASK:
                asked = event
            elif asked is not None:
                yield (int(event["time"]) - int(asked["time"])) / 1e9, event
                asked = None

    def _read_of(self, event: np.void) -> Events:
        """The beginning of the read to which an event of a reader belongs; empty where it was not recorded."""
        of_it = (self.reads["pid"] == event["pid"]) & (self.reads["sample"] == event["sample"]) & (self.reads["time"] <= event["time"])
        found: Events = self.reads[of_it][-1:]
        return found

    def in_thread(self, event: np.void) -> bool:
        """Whether the read of an event happened in another thread than the main one of its process."""
        return bool(np.any(self._read_of(event)["flags"] == 1))

    def goes_on_reading(self, event: np.void) -> bool:
        """Whether the thread that wrote an event began another read after it."""
        mine = (self.reads["pid"] == event["pid"]) & np.isin(self.reads["aux"], self._read_of(event)["aux"])
        return bool(np.any(mine & (self.reads["time"] > event["time"])))

    def said(self, event: np.void) -> str:
        """The last line of the text of an event."""
        lines = self.history.text(event).strip().splitlines()
        return lines[-1][:100] if lines else ""

    @functools.cached_property
    def last_words(self) -> str:
        """The last line that the trial printed."""
        lines = self.history.output.strip().splitlines()
        return lines[-1].strip()[:120] if lines else ""
