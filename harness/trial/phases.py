"""What a trial does, as a program of phases: each is one life of the consumer.

A trial of one epoch is ``(Phase(),)``. An epoch that is left after two batches, and the next one on the same loader:

    >>> program = (Phase(until=Batches(2), then=Abandon()), Phase(first_epoch=1, same_process=True))
    >>> logical_epochs(program)
    [[(0, 0)], [(1, 1)]]

A resume in a new process is one logical epoch in two phases, and one more epoch:

    >>> logical_epochs((Phase(until=Batches(2), then=Save()), Phase(load=0, epochs=2)))
    [[(0, 0), (1, 0)], [(1, 1)]]
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Sequence
from typing import Any, Literal

from ..errors import UserError
from ..nearest import unknown
from ..plain import Plain, build
from .event_log import Kind


@dataclasses.dataclass(frozen=True)
class Topology(Plain):
    """Workers × ranks × start method × whether the workers stay for the next epoch."""

    workers: int = 0
    ranks: int = 1
    start_method: str | None = None
    persistent: bool = False
    """Whether the workers of one epoch should also serve the next one."""

    def __str__(self) -> str:
        parts = [f"workers={self.workers}"]
        if self.ranks != 1:
            parts.append(f"ranks={self.ranks}")
        if self.start_method:
            parts.append(self.start_method)
        if self.persistent:
            parts.append("persistent")
        return ",".join(parts)


@dataclasses.dataclass(frozen=True)
class End:
    """Consume until ``StopIteration``."""


@dataclasses.dataclass(frozen=True)
class Batches:
    """Consume ``n`` batches (or errors) of the phase's last epoch; 0: stop before the first call of ``next()``."""

    n: int


@dataclasses.dataclass(frozen=True)
class Event:
    """Consume until the trial supervisor has seen an event ``n`` times. Only for phases that end with a signal.

    >>> Event("got", 2)         # a rank got its second batch
    Event(kind='got', n=2, sample=None, rank=None)
    >>> Event("read", sample=7)     # a read of sample 7 has begun
    Event(kind='read', n=1, sample=7, rank=None)
    """

    kind: str
    """The name of a :class:`~badbatch.harness.trial.event_log.Kind`, in lower case."""
    n: int = 1
    sample: int | None = None
    """Only events of this sample; None: of any."""
    rank: int | None = None
    """Only events of this rank; None: of any."""


@dataclasses.dataclass(frozen=True)
class Close:
    """Drop the iterator, close the loader and drop it."""


@dataclasses.dataclass(frozen=True)
class Abandon:
    """Drop the iterator and keep the loader: a ``break`` out of the epoch. A next phase in the same process uses the same loader."""


@dataclasses.dataclass(frozen=True)
class Save:
    """Ask the loader for its state.

    A next phase in the same process that loads nothing continues with the same iterator.
    """


@dataclasses.dataclass(frozen=True)
class Signal:
    """The trial supervisor sends a signal when the point of ``until`` is reached. A worker's death does not end the phase."""

    signum: int = int(signal.SIGINT)
    to: Literal["main", "group", "worker"] = "main"
    """The process of the rank, its process group, or one process below it."""


Until = End | Batches | Event
Then = Close | Abandon | Save | Signal
_KINDS: dict[str, type[Any]] = {
    "end": End, "batches": Batches, "event": Event, "close": Close, "abandon": Abandon, "save": Save, "signal": Signal,
}


@dataclasses.dataclass(frozen=True)
class Phase:
    """One life of the consumer: build the loader, perhaps load a state, consume up to a point, stop in a given way."""

    topology: Topology | None = None
    """None: that of the trial."""
    first_epoch: int = 0
    """The number that ``set_epoch`` gets first."""
    epochs: int = 1
    until: Until = dataclasses.field(default_factory=End)
    """Where the last of the epochs stops."""
    then: Then = dataclasses.field(default_factory=Close)
    load: int | None = None
    """The phase whose saved state is loaded."""
    same_process: bool = False
    """It runs in the process of the phase before it."""

    @property
    def last_epoch(self) -> int:
        """The number of its last epoch."""
        return self.first_epoch + self.epochs - 1

    @property
    def numbers(self) -> range:
        """The numbers of its epochs."""
        return range(self.first_epoch, self.first_epoch + self.epochs)

    @property
    def stops_early(self) -> bool:
        """Whether its last epoch is left before its end."""
        return not isinstance(self.until, End)

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object; ``until`` and ``then`` with their class's name in lower case as ``"kind"``."""
        data = dataclasses.asdict(self)
        for name in ("until", "then"):
            value = getattr(self, name)
            data[name] = {"point": type(value).__name__.lower(), **dataclasses.asdict(value)}
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Phase:
        """The inverse of :meth:`to_json`.

        Raises:
            UserError: one line: what is wrong with the data.
        """
        return build(cls, data, **{name: _point(name, data[name]) for name in ("until", "then")})


def _point(name: str, data: dict[str, Any]) -> Any:
    """The point at which a phase stops, or what it does then."""
    fields = dict(data)
    kind = fields.pop("point", None)
    if kind not in _KINDS:
        raise UserError(f"{name}: {unknown('point', kind, _KINDS)}")
    return build(_KINDS[kind], fields)


Program = tuple[Phase, ...]


def must_be_runnable(phases: Sequence[Phase], topology: Topology) -> None:
    """Refuse a program that cannot be run.

    Raises:
        UserError: in one line, which phase is wrong and why.
    """
    if not phases:
        raise UserError("a trial needs at least one phase")
    for number, phase in enumerate(phases):
        if why := _wrong(phases, number, phase, topology):
            raise UserError(f"phase {number} of the trial {why}")


def _wrong(phases: Sequence[Phase], number: int, phase: Phase, topology: Topology) -> str:
    """Why a phase cannot be run; empty: it can."""
    if phase.epochs < 1 or phase.first_epoch < 0:
        return "has no epoch, or a negative one"
    if isinstance(phase.until, Batches) and phase.until.n < 0:
        return "stops after a negative number of batches"
    if isinstance(phase.until, Event) and not isinstance(phase.then, Signal):
        return "stops at an event, which only a phase that ends with a signal can"
    if isinstance(phase.until, Event) and phase.until.kind.upper() not in Kind.__members__:
        return f"waits for an event {phase.until.kind!r}, which no log has"
    if phase.load is not None and not (0 <= phase.load < number and isinstance(phases[phase.load].then, Save)):
        return f"loads the state of phase {phase.load}, which saves none before it"
    return _cannot_follow(phases, number, topology) if phase.same_process else ""


def _cannot_follow(phases: Sequence[Phase], number: int, topology: Topology) -> str:
    """Why a phase cannot run in the process of the one before it; empty: it can."""
    if number == 0:
        return "is the first and cannot be in the process of another"
    phase, before = phases[number], phases[number - 1]
    if isinstance(before.then, Signal):
        return "is in the process of a phase that ends with a signal"
    if (phase.topology or topology) != (before.topology or topology):
        return "has another topology than the phase before it in the same process"
    return ""


def continues(phases: Sequence[Phase], number: int) -> bool:
    """Whether a phase continues the logical epoch of an earlier one: of the phase that it loads, or the one before it.

    It does if its first epoch is the one in which the state was taken, and that epoch had not ended.
    """
    source = _source(phases, number)
    if source is None:
        return False
    return phases[source].stops_early and phases[source].last_epoch == phases[number].first_epoch


def _source(phases: Sequence[Phase], number: int) -> int | None:
    """The phase from which a phase takes its position; None: it starts from the beginning."""
    phase = phases[number]
    if phase.load is not None:
        return phase.load
    return number - 1 if keeps_iterator(phases, number - 1) else None


def keeps_iterator(phases: Sequence[Phase], number: int) -> bool:
    """Whether the phase after this one continues with the iterator of this one."""
    if not 0 <= number < len(phases) - 1 or not isinstance(phases[number].then, Save):
        return False
    after = phases[number + 1]
    return after.same_process and after.load is None and phases[number].stops_early


def keeps_loader(phases: Sequence[Phase], number: int) -> bool:
    """Whether the phase after this one uses the loader of this one."""
    if not 0 <= number < len(phases) - 1 or isinstance(phases[number].then, (Close, Signal)):
        return False
    after = phases[number + 1]
    return after.same_process and after.load is None


def logical_epochs(phases: Sequence[Phase]) -> list[list[tuple[int, int]]]:
    """The logical epochs: each a list of its segments, (phase, number of the epoch), in order.

    A phase that loads a state continues the logical epoch in which the state was taken. If two phases load the same
    state, the second one's epoch is a separate logical epoch, which begins with the same segments.
    """
    found: list[list[tuple[int, int]]] = []
    open_at: dict[int, int] = {}
    for number, phase in enumerate(phases):
        for epoch in phase.numbers:
            segment = (number, epoch)
            source = _source(phases, number) if epoch == phase.first_epoch and continues(phases, number) else None
            if source is None:
                found.append([segment])
            else:
                place = open_at[source]
                earlier = found[place][: found[place].index((source, phases[source].last_epoch)) + 1]
                if earlier == found[place]:
                    found[place].append(segment)
                else:
                    found.append([*earlier, segment])
                    place = len(found) - 1
                open_at[number] = place
                continue
            open_at[number] = len(found) - 1
    return found


def lives(phases: Sequence[Phase]) -> list[range]:
    """The phases that run in one process, as ranges of their numbers, in order."""
    starts = [number for number, phase in enumerate(phases) if not phase.same_process]
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(phases)], strict=True)]


def builds_several(phases: Sequence[Phase]) -> bool:
    """Whether one process builds several loaders, so that what each leaves behind accumulates."""
    return any(sum(not keeps_loader(phases, number) for number in life) > 1 for life in lives(phases))


def life_of(phases: Sequence[Phase], number: int) -> range:
    """The phases that run in the process of a phase."""
    return next(life for life in lives(phases) if number in life)


def ends_by_signal(phases: Sequence[Phase], life: range) -> bool:
    """Whether the process of some phases gets a signal in the last of them."""
    return isinstance(phases[life[-1]].then, Signal)


def plain(epochs: int = 1) -> Program:
    """This many epochs of one loader."""
    return (Phase(epochs=epochs),)


def left_early(batches: int, epochs: int = 2) -> Program:
    """The first epoch ends after some batches; then the others, with the same loader."""
    first = Phase(until=Batches(batches), then=Abandon() if epochs > 1 else Close())
    return (first, Phase(first_epoch=1, epochs=epochs - 1, same_process=True)) if epochs > 1 else (first,)


def set_back(epochs: int = 2) -> Program:
    """This many epochs of one loader, and then the first of them once more."""
    return (Phase(epochs=epochs, then=Abandon()), Phase(same_process=True))


def rebuilt(times: int = 2, until: Until | None = None) -> Program:
    """Loaders that are built, consumed and dropped in one process, one after the other."""
    phase = Phase() if until is None else Phase(until=until)
    return (phase, *(dataclasses.replace(phase, same_process=True) for _ in range(1, times)))


def in_words(phases: Sequence[Phase]) -> str:
    """A program in words, for readers of reports: ``one epoch, left after 2 batches; then one epoch of the same loader``."""
    parts = []
    for number, phase in enumerate(phases):
        words = "one epoch" if phase.epochs == 1 else f"{phase.epochs} epochs"
        if keeps_loader(phases, number - 1):
            words += " of the same loader"
        elif number:
            words += " of another loader in the same process" if phase.same_process else " in a new process"
        if phase.load is not None:
            words += f", from the state of phase {phase.load}"
        if isinstance(phase.until, Batches):
            words += f", left after {phase.until.n} batches"
        if isinstance(phase.then, Save):
            words += ", then the state is saved"
        elif isinstance(phase.then, Signal):
            words += f", ended by {signal.Signals(phase.then.signum).name} to the {phase.then.to}"
        parts.append(words)
    return "; then ".join(parts)


def of_format_1(epochs: int, break_after: int | None, rounds: int) -> Program:
    """The program of a trial of format 1, which had these three numbers in place of phases."""
    if rounds > 1:
        return rebuilt(rounds, None if break_after is None else Batches(break_after))
    return plain(epochs) if break_after is None else left_early(break_after, epochs)
