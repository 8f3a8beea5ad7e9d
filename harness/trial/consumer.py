"""What runs inside the supervised process: one rank's consumer, and its record of all that happens."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ..contract.calling import Built
from ..errors import LoaderError, one_line
from .batch import BatchReader, UnreadableBatch
from .event_log import Cap, Kind, Recorder, Remains, Where
from .phases import Batches, Close, End, Phase, Program, Save, Signal, Until, keeps_iterator, keeps_loader
from .signals import was_signalled
from .skipped import skipped_of
from .snapshots import Album
from .spec import LEAVE_WITHIN_S, TrialSpec
from .states import States

_SIGNAL_POLL_S = 0.005


class LeakWatch(Protocol):
    """Compares what this process has with what it had before the loader was built."""

    def snapshot(self, own_descriptors: set[int]) -> Any:
        """What exists now."""
        ...

    def wait_for(
        self, before: Any, own_descriptors: set[int], within_s: float, besides: Sequence[tuple[Remains, str]] = ()
    ) -> list[tuple[Remains, str]]:
        """What exists beyond ``before`` and ``besides``; waits up to ``within_s`` seconds until there is nothing."""
        ...

    def beyond(self, kept: Sequence[tuple[Remains, str]], found: Sequence[tuple[Remains, str]]) -> list[tuple[Remains, str]]:
        """What is found more often than in the baseline."""
        ...


class LockStep(Protocol):
    """Waits for the other ranks in each step, as distributed training does."""

    def step(self) -> None:
        """Raises RuntimeError if another rank does not arrive."""
        ...


class Consumer:
    """Calls the loader as a training loop would, catches everything that it raises, and records it.

    The loader's SIGCHLD handler is active only while the loader's own code, or the simulated training step, runs. torch
    raises a worker's death from that handler in whatever line is executing, and that must not be a line of the record.
    A signal that arrives in between is stored, and passed to the loader's handler when its code runs next.
    """

    def __init__(
        self,
        spec: TrialSpec,
        rank: int,
        recorder: Recorder,
        reader: BatchReader,
        lockstep: LockStep | None,
        leaks: LeakWatch,
        album: Album,
        states: States,
    ) -> None:
        self._spec = spec
        self._program = spec.phases
        self._states = states
        self._built: Built | None = None
        self._iterator: Iterator[Any] | None = None
        self._before: Any = None
        self._kept: list[tuple[Remains, str]] = []
        self._closings = 0
        self._closed = 0
        self._interruptible = False
        self._record = recorder
        self._read = reader
        self._lockstep = lockstep
        self._leaks = leaks
        self._album = album
        self._rank = rank
        self._epoch = 0
        self._step = 0
        self._handler: Any = signal.SIG_DFL
        self._child_died = False

    def guarded(self, call: Callable[[], Any], where: Where, default: Any = None) -> tuple[Any, BaseException | None]:
        """Run the loader's code; whatever it raises is recorded and returned. StopIteration is returned unrecorded."""
        result, error = default, None
        late: BaseException | None = None
        ending: BaseException | None = None
        try:
            try:
                self._hand_over()
                result = call()
            except BaseException as caught:
                error = caught
            late = self._take_back()
            if error is not None and not (where is Where.NEXT and isinstance(error, StopIteration)):
                self._raised(error, where)
            if late is not None:
                self._raised(late, Where.OUTSIDE)
            for ending in (error, late):
                if self._interruptible and isinstance(ending, (KeyboardInterrupt, SystemExit)):
                    raise ending  # as in a training script, which does not catch it
            return result, error
        finally:
            # The error's traceback holds this frame. Frame and error would keep each other, and the loader's iterator with
            # them, until the garbage collector takes all apart in any order.
            error = late = ending = None

    def _hand_over(self) -> None:
        """Activate the loader's SIGCHLD handler; may raise what it raises for a death that happened in between."""
        signal.signal(signal.SIGCHLD, self._handler)
        if self._child_died:
            self._child_died = False
            if callable(self._handler):
                self._handler(signal.SIGCHLD, None)

    def _take_back(self) -> BaseException | None:
        """Activate badbatch's handler; return what the loader's raises for a signal that is still pending."""
        late = None
        while True:
            try:
                self._handler = signal.signal(signal.SIGCHLD, self._note)
                return late
            except BaseException as caught:  # signal.signal() runs pending handlers before it replaces one
                late = caught

    def _note(self, signum: int, frame: Any) -> None:
        self._child_died = True

    def _raised(self, error: BaseException, where: Where) -> None:
        self._record(Kind.RAISED, self._step, aux=self._record.error(error), flags=where, epoch=self._epoch)

    def run(self, make: Callable[[int], Built], phases: range) -> None:
        """The life of one rank's process: some phases of the trial, one after the other.

        Args:
            make: builds the loader for a phase.
            phases: the numbers of the phases that run in this process.
        """
        self._before = self._leaks.snapshot(self._record.descriptors())
        self._closings = sum(_drops(self._program, number) for number in phases)
        for number in phases:
            self._record.enter_phase(number)
            if self._built is None and not self._build(make, number):
                return
            self._one_phase(number)

    def _one_phase(self, number: int) -> None:
        phase = self._program[number]
        for epoch in phase.numbers:
            self._epoch = epoch
            self._one_epoch(phase, number)
        if _drops(self._program, number):
            self._close_and_drop()

    def _build(self, make: Callable[[int], Built], number: int) -> bool:
        """Build the loader of a phase, and load a state if the phase says so; return whether that worked."""
        self._record(Kind.BUILDING)
        self._built, error = self.guarded(lambda: make(number), Where.FACTORY)
        if self._built is None:
            if isinstance(error, LoaderError):
                self._record(Kind.UNREADABLE, 0, aux=self._record.error(error))
            return False
        has_state = all(hasattr(self._built.loader, name) for name in ("state_dict", "load_state_dict"))
        self._record(Kind.BUILT, flags=has_state)
        self._length(self._built.loader, 0)
        source = self._program[number].load
        return source is None or self._load(self._built.loader, source)

    def _load(self, loader: Any, source: int) -> bool:
        _, error = self.guarded(lambda: self._states.load(loader, source), Where.LOAD)
        if error is not None:
            self._built = None
            return False
        self._record(Kind.LOADED, source)
        return True

    def _save(self, number: int) -> None:
        assert self._built is not None
        loader = self._built.loader
        size, error = self.guarded(lambda: self._states.save(loader, number), Where.SAVE)
        if error is None:
            self._record(Kind.SAVED, size, aux=self._step, epoch=self._epoch)

    def _close_and_drop(self) -> None:
        assert self._built is not None
        self._length(self._built.loader, 1)
        self._record(Kind.CLOSING, flags=1)
        self.guarded(lambda: _close(self._built.loader) if self._built else None, Where.CLOSE)

        def drop() -> None:
            self._built = None
            gc.collect()

        self.guarded(drop, Where.CLOSE)
        self._record(Kind.CLOSED, flags=1)
        self._compare_leaks()

    def _compare_leaks(self) -> None:
        """After several loaders of one process: what grew since the first was leaked, and the rest is kept once."""
        if self._closings < 2:
            return
        self._closed += 1
        if self._closed == 1:
            self._kept = self._leaks.wait_for(self._before, self._record.descriptors(), LEAVE_WITHIN_S)
        elif self._closed == self._closings:
            grown = self._leaks.wait_for(self._before, self._record.descriptors(), LEAVE_WITHIN_S, self._kept)
            for kind, found in ((Kind.LEFTOVER, grown), (Kind.KEPT, self._leaks.beyond(grown, self._kept))):
                for what, name in found:
                    self._record(kind, flags=what, aux=self._record.text(type="leftover", message=name))

    def _length(self, loader: Any, phase: int) -> None:
        if not hasattr(type(loader), "__len__"):
            return
        length, error = self.guarded(lambda: _length_of(loader), Where.LENGTH)
        if error is None and length is not None:
            self._record(Kind.LENGTH, int(length), flags=phase)

    def _one_epoch(self, phase: Phase, number: int) -> None:
        """One epoch of the phase; the last one stops where the phase says."""
        assert self._built is not None
        is_last = self._epoch == phase.last_epoch
        self._interruptible = is_last and isinstance(phase.then, Signal)
        until = phase.until if is_last else End()
        if self._iterator is None:
            self._step = 0
            self._record(Kind.EPOCH, flags=self._built.set_epoch is not None, epoch=self._epoch)
            if self._built.set_epoch is not None:
                self.guarded(lambda: self._built.set_epoch(self._epoch) if self._built and self._built.set_epoch else None, Where.ITER)
            self._iterator = self.guarded(lambda: iter(self._built.loader) if self._built else None, Where.ITER)[0]
        if self._iterator is not None:
            self._drain(self._iterator, until, number)
        if isinstance(phase.then, Save) and is_last:
            self._save(number)
            if keeps_iterator(self._program, number):
                return
        self._record(Kind.EPOCH_DONE, epoch=self._epoch)
        self._reported(self._built.loader)
        self._record(Kind.CLOSING, epoch=self._epoch)

        def drop() -> None:
            self._iterator = None

        self.guarded(drop, Where.CLOSE)
        self.guarded(gc.collect, Where.CLOSE)
        self._record(Kind.CLOSED, epoch=self._epoch)

    def _drain(self, iterator: Iterator[Any], until: Until, number: int) -> None:
        errors = 0
        nothing = object()
        signalled = False
        while True:
            if isinstance(until, Batches) and self._step >= until.n:
                if not self._interruptible:
                    self._record(Kind.BROKE, aux=max(0, self._step - 1), epoch=self._epoch)
                    return
                self._wait_for_signal(number)
                until, signalled = End(), True
            if self._step >= self._spec.call_cap or errors > self._spec.error_cap:
                self._gave_up(Cap.ERRORS if errors > self._spec.error_cap else Cap.CALLS)
                return
            self._record(Kind.DELAY, _run_delay_ns())
            self._record(Kind.ASK, aux=self._step, epoch=self._epoch)
            batch, error = self.guarded(lambda: next(iterator), Where.NEXT, nothing)
            self._record(Kind.DELAY, _run_delay_ns())
            if isinstance(error, StopIteration):
                error = None  # as in guarded()
                self._record(Kind.END, aux=self._step, epoch=self._epoch)
                if self._interruptible and isinstance(until, End) and not signalled:
                    self._wait_for_signal(number)
                return
            if batch is not nothing:
                errors = 0
                self._got(batch)
            if error is not None:
                errors += 1
            del batch, error
            if not (isinstance(until, Batches) and self._step + 1 >= until.n):
                if self._spec.step_s:
                    self.guarded(lambda: time.sleep(self._spec.step_s), Where.OUTSIDE)  # the training step itself
                self._together()
            self._step += 1

    def _wait_for_signal(self, number: int) -> None:
        """Stay in a training step until the trial supervisor has sent its signal; one to this process ends the step."""
        self._record(Kind.REACHED, aux=self._step, epoch=self._epoch)
        while not was_signalled(self._states.folder, number):
            self.guarded(lambda: time.sleep(_SIGNAL_POLL_S), Where.OUTSIDE)

    def _gave_up(self, why: Cap) -> None:
        self._record(Kind.CAPPED, aux=self._step, flags=why, epoch=self._epoch)

    def _got(self, batch: Any) -> None:
        self._arrived(batch)
        for sample, picture in self._read.wrong:
            self._album.add(sample, picture)
        self._read.wrong = []  # a picture may be a view into the batch, and must not keep it

    def _arrived(self, batch: Any) -> None:
        try:
            ids, flags = self._read.read(batch)
        except UnreadableBatch as error:
            self._record(Kind.GOT, -1, aux=self._step, epoch=self._epoch)
            self._record(Kind.UNREADABLE, self._step, aux=self._record.error(str(error)), epoch=self._epoch)
            return
        except BaseException as error:
            # No reader can read this batch: the loader's error, recorded with the error that reading it raised.
            self._record(Kind.GOT, -1, aux=self._step, epoch=self._epoch)
            message = f"the batch cannot be read: {one_line(error)}"
            self._record(Kind.UNREADABLE, self._step, aux=self._record.error(message), epoch=self._epoch)
            return
        self._record(Kind.GOT, len(ids), aux=self._step, epoch=self._epoch)
        if len(ids):
            self._record.many(Kind.ARRIVED, ids, self._step, flags, self._epoch)
            if self._read.fields is not None:
                self._record.many(Kind.FIELDS, ids, self._read.fields, 0, self._epoch)

    def _together(self) -> None:
        if self._lockstep is None:
            return
        try:
            self._lockstep.step()
        except RuntimeError as error:  # gloo's only class for: timed out, or the peer has ended
            self._record(Kind.WAITED, aux=self._step, sample=self._record.error(error), epoch=self._epoch)
            self._lockstep = None

    def _reported(self, loader: Any) -> None:
        reported, _ = self.guarded(lambda: skipped_of(loader), Where.REPORT)
        if reported is None:
            return
        if isinstance(reported, LoaderError):
            self._record(Kind.UNREADABLE, self._step, aux=self._record.error(str(reported)), epoch=self._epoch)
            return
        self._record(Kind.REPORTED, -1, aux=reported.total, flags=1, epoch=self._epoch)
        if reported.ids:
            self._record.many(Kind.REPORTED, reported.ids, 1, 0, self._epoch)
        for reason, count in reported.reasons:
            self._record(Kind.REASON, count, aux=self._record.error(reason), epoch=self._epoch)


def _drops(program: Program, number: int) -> bool:
    """Whether the loader is closed and dropped after a phase."""
    return isinstance(program[number].then, (Close, Save)) and not keeps_loader(program, number)


def _length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # the protocol's way to say that there is no length (PEP 424)
        return None


def _close(loader: Any) -> None:
    close = getattr(loader, "close", None)
    if callable(close):
        close()


def _run_delay_ns() -> int:
    """Nanoseconds that this thread was ready to run and waited for a processor, since it began (Linux only, otherwise 0)."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
