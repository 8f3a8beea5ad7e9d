"""The immutable record of a trial: the question, the reads, faults, deliveries and errors, and how it ended."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UserError
from ..plain import from_plain
from . import endings, torn
from .event_log import RECORD, Actor, Kind, read_log
from .phases import logical_epochs
from .spec import TrialSpec

Events = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a trial ended, as its trial supervisor saw it."""

    cut: str | None = None
    """Why it was cut short: ``out of time``, ``stalled``, ``interrupted``, ``lost`` (its trial supervisor died); None: it was not."""
    seconds: float = 0.0
    ranks: tuple[int | None, ...] = (0,)
    """For each rank its exit code; negative: the signal that killed it; None: it was still running when cut."""
    leftovers: tuple[Mapping[str, str], ...] = ()
    """What outlived the consumer: ``{"what": "process" | "shared memory", "name": …}``."""
    evidence: tuple[Mapping[str, Any], ...] = ()
    """For a trial that was cut: what each of its processes was doing."""
    cut_at: int | None = None
    """For a trial that was cut: when, on the clock of the events (nanoseconds)."""
    why: str = ""
    """For a trial that stalled: what proves that it would not have ended; empty: nothing happened for a long time."""
    isolation: str = "fork"
    """``fork`` or ``spawn``: how its ranks were started."""
    private: bool = False
    """It had a ``/dev/shm`` of its own."""
    segments: tuple[str, ...] = ()
    """Where that was watched: the names that appeared in ``/dev/shm``."""
    watched: tuple[int, int] = (0, 0)
    """From when until when, on the clock of the events (nanoseconds)."""

    def __str__(self) -> str:
        if self.cut:
            return self.cut
        bad = [(rank, code) for rank, code in enumerate(self.ranks) if code != 0]
        if not bad:
            return "ended"
        rank, code = bad[0]
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return how if len(self.ranks) == 1 else f"rank {rank}: {how}"


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """What happened in one trial.

    ``events`` is a structured array of :data:`~badbatch.harness.trial.event_log.RECORD`, rank by rank, and within each rank in
    the order in which they were written: in order of time for each process, but not strictly so between processes. It has
    what the trial's own processes did; ``watched`` has what the trial supervisor did and measured.
    """

    spec: TrialSpec
    events: Events
    texts: Mapping[tuple[int, int], Mapping[str, Any]]
    """From (pid, number) to the recorded text."""
    ended: Ended = Ended()
    stacks: str = ""
    """Python stacks of all processes of a trial that was cut."""
    output: str = ""
    """The end of what the loader printed."""
    folder: str | None = None
    torn: str = ""
    """Why the record lacks something, in the words of the system: it could not be written. Empty: it lacks nothing."""
    watched: Events = dataclasses.field(default_factory=lambda: np.empty(0, RECORD))
    """What the trial supervisor recorded: the signals that it sent; memory, threads and descriptors of the processes."""

    @classmethod
    def load(cls, folder: Path) -> History:
        """Read a trial's folder.

        Raises:
            UserError: the folder contains no trial.
        """
        spec = TrialSpec.read(folder / endings.TRIAL)
        parts = [read_log(folder / f"events-{rank}.bin") for rank in range(spec.most_ranks)]
        texts: dict[tuple[int, int], Mapping[str, Any]] = {}
        for rank in range(spec.most_ranks):
            texts.update(_texts(folder / f"texts-{rank}.jsonl"))
        events = parts[0] if len(parts) == 1 else np.concatenate(parts)
        by_supervisor = events["actor"] == Actor.SUPERVISOR
        watched = events[by_supervisor]
        return cls(
            spec=spec,
            events=events[~by_supervisor] if len(watched) else events,
            watched=watched,
            texts=texts,
            ended=_ended(folder, spec),
            stacks=_tails(folder, "stacks", 20_000),
            output=_tails(folder, "output", 4_000),
            folder=str(folder),
            torn=torn.noted(folder),
        )

    def of(self, *kinds: Kind, epoch: int | None = None, rank: int | None = None) -> Events:
        """The events of these kinds, in order; they must not be changed.

        Args:
            epoch: only those of this logical epoch, by its place among them; readers' events have none.
            rank: only those of this rank.
        """
        found = self._of_kind(kinds[0]) if len(kinds) == 1 else self._of_kinds(kinds)
        if epoch is not None:
            found = _chosen(found, self.in_epoch(found, epoch))
        return found if rank is None else _chosen(found, found["rank"] == rank)

    def in_epoch(self, events: Events, number: int) -> npt.NDArray[np.bool_]:
        """For each event of a consumer, whether it is in a logical epoch, given by its place among them."""
        if self._numbered_alike:
            return np.asarray(events["epoch"] == number)
        chosen = np.zeros(len(events), np.bool_)
        for phase, epoch in self.logical_epochs[number]:
            chosen |= (events["phase"] == phase) & (events["epoch"] == epoch)
        return chosen

    @functools.cached_property
    def logical_epochs(self) -> list[list[tuple[int, int]]]:
        """For each logical epoch its segments on every rank: (phase, number of the epoch)."""
        return logical_epochs(self.spec.phases)

    @functools.cached_property
    def _numbered_alike(self) -> bool:
        """Whether each logical epoch has the number of its epoch: there is one phase."""
        return self.logical_epochs == [[(0, number)] for number in range(len(self.logical_epochs))]

    def segment(self, phase: int, epoch: int, rank: int) -> Events:
        """What the consumer of one rank recorded in one epoch of one phase."""
        events = self.events
        found: Events = events[(events["phase"] == phase) & (events["epoch"] == epoch) & (events["rank"] == rank)]
        return found

    def logical(self, event: Any) -> int | None:
        """The first logical epoch in which an event is; None: it is in none."""
        segment = int(event["phase"]), int(event["epoch"])
        return next((number for number, segments in enumerate(self.logical_epochs) if segment in segments), None)

    @functools.cached_property
    def _kinds(self) -> npt.NDArray[np.uint8]:
        """Only the kinds, side by side: a search then reads one byte for each event, and not the whole record."""
        return np.ascontiguousarray(self.events["kind"])

    @functools.cached_property
    def _by_kind(self) -> dict[Kind, Events]:
        return {}

    def _of_kind(self, kind: Kind) -> Events:
        if kind not in self._by_kind:
            found = self.events[self._kinds == kind]
            found.flags.writeable = False
            self._by_kind[kind] = found
        return self._by_kind[kind]

    def _of_kinds(self, kinds: tuple[Kind, ...]) -> Events:
        wanted = np.zeros(256, np.bool_)
        wanted[list(kinds)] = True
        found: Events = self.events[wanted[self._kinds]]
        return found

    def text(self, event: Any, field: str = "message") -> str:
        """The text of an event."""
        return str(self.texts.get((int(event["pid"]), int(event["aux"])), {}).get(field, ""))

    def causes(self, event: Any) -> list[tuple[str, str]]:
        """The causes of an error (``__cause__`` or ``__context__``), the nearest first: (type, message)."""
        found = self.texts.get((int(event["pid"]), int(event["aux"])), {}).get("causes", ())
        return [(str(cause["type"]), str(cause["message"])) for cause in found]

    def chain(self, event: Any) -> str:
        """The message of an error and of its causes, as a traceback shows them; one in each line."""
        return "\n".join([self.text(event), *(message for _, message in self.causes(event))])

    @functools.cached_property
    def struck(self) -> npt.NDArray[np.int64]:
        """The samples whose fault took effect, each once, in order of their ids."""
        found: npt.NDArray[np.int64] = np.unique(self.of(Kind.FAULT)["sample"])
        return found

    @functools.cached_property
    def finished_ranks(self) -> frozenset[int]:
        """The ranks whose consumer ran to the end of the last phase."""
        finished = self.of(Kind.FINISHED)
        return frozenset(int(rank) for rank in finished["rank"][finished["phase"] == len(self.spec.phases) - 1])

    @property
    def complete(self) -> bool:
        """Whether every rank's consumer ran to its end, so that what is missing is really missing."""
        return self.ended.cut is None and len(self.finished_ranks) == self.spec.in_phase(-1).topology.ranks


def _chosen(events: Events, which: npt.NDArray[np.bool_]) -> Events:
    return events if which.all() else events[which]  # usually all are: avoid the copy


def _texts(path: Path) -> Iterable[tuple[tuple[int, int], Mapping[str, Any]]]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            data = json.loads(line)
            key = data["pid"], data["n"]
        except (ValueError, TypeError, KeyError):  # the last line of a process that was killed while it wrote
            continue
        yield key, data


_ALWAYS_WRITTEN = ("cut", "seconds", "ranks", "leftovers", "evidence")


def _ended(folder: Path, spec: TrialSpec) -> Ended:
    try:
        data = json.loads((folder / endings.ENDED).read_text(encoding="utf-8"))
        if missing := [name for name in _ALWAYS_WRITTEN if not isinstance(data, dict) or name not in data]:
            raise UserError(f"it lacks {missing[0]}")
        return from_plain(Ended, data)
    except FileNotFoundError:
        return Ended(cut=endings.LOST, ranks=(None,) * spec.topology.ranks)
    except (ValueError, UserError) as error:
        raise UserError(f"{folder / endings.ENDED} is damaged: {error}") from error


def _tails(folder: Path, stem: str, limit: int) -> str:
    parts = []
    for path in sorted(folder.glob(f"{stem}-*.txt")):
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limit))
            text = file.read().decode("utf-8", "replace").strip()
        if text:
            parts.append(text)
    return "\n".join(parts)
