"""What runs inside the supervised process: one rank's consumer, and its record of all that happens."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..contract.calling import Built
from ..errors import LoaderError, one_line
from .batch import BatchReader, UnreadableBatch
from .event_log import Cap, Kind, Recorder, Remains, Where
from .snapshots import Album
from .spec import LEAVE_WITHIN_S, TrialSpec


class LeakWatch(Protocol):
    """Compares what this process has with what it had before the loader was built."""

    def snapshot(self, own_descriptors: set[int]) -> Any:
        """What there is now."""
        ...

    def wait_for(
        self, before: Any, own_descriptors: set[int], within_s: float, besides: Sequence[tuple[Remains, str]] = ()
    ) -> list[tuple[Remains, str]]:
        """What there is beyond ``before`` and ``besides``; waits up to ``within_s`` seconds until that is nothing."""
        ...

    def beyond(self, kept: Sequence[tuple[Remains, str]], found: Sequence[tuple[Remains, str]]) -> list[tuple[Remains, str]]:
        """What is found more often than it was kept."""
        ...


class LockStep(Protocol):
    """Meets the other ranks once a step, as distributed training does."""

    def step(self) -> None:
        """Raises RuntimeError where another rank does not come."""
        ...


class Consumer:
    """Calls the loader as a training loop would, catches whatever comes, and records it.

    The loader's SIGCHLD handler is in force only while the loader's own code, or the simulated training step, runs: torch
    raises a worker's death from that handler in whatever line is executing, and that must not be a line of the record's
    own. A signal that arrives in between is noted, and handed to the loader's handler when its code runs next.
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
    ) -> None:
        self._spec = spec
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
        return result, error

    def _hand_over(self) -> None:
        """Put the loader's SIGCHLD handler in force; may raise what it raises for a death that came in between."""
        signal.signal(signal.SIGCHLD, self._handler)
        if self._child_died:
            self._child_died = False
            if callable(self._handler):
                self._handler(signal.SIGCHLD, None)

    def _take_back(self) -> BaseException | None:
        """Put our own handler in force; what the loader's raises for a signal that is still pending is returned."""
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

    def run(self, make: Callable[[], Built]) -> None:
        """The whole trial of one rank, from the factory to the leftovers."""
        before = self._leaks.snapshot(self._record.descriptors())
        self._record(Kind.BUILDING)
        built, error = self.guarded(make, Where.FACTORY)
        if built is None:
            if isinstance(error, LoaderError):
                self._record(Kind.UNREADABLE, 0, aux=self._record.error(error))
            return
        self._record(Kind.BUILT)
        self._length(built.loader, 0)
        for epoch in range(self._spec.epochs):
            self._epoch = epoch
            self._one_epoch(built)
        self._length(built.loader, 1)
        self._record(Kind.CLOSING, flags=1)
        self.guarded(lambda: _close(built.loader) if built else None, Where.CLOSE)

        def drop() -> None:
            nonlocal built
            built = None
            gc.collect()

        self.guarded(drop, Where.CLOSE)
        self._record(Kind.CLOSED, flags=1)
        if self._spec.rounds > 1:
            self._compare_rounds(make, before)

    def _compare_rounds(self, make: Callable[[], Built], before: Any) -> None:
        """Build, consume and drop more loaders: what there is more of then was leaked, and the rest is kept once."""
        first = self._leaks.wait_for(before, self._record.descriptors(), LEAVE_WITHIN_S)
        for _ in range(1, self._spec.rounds):
            self._unrecorded(lambda: self._consume_again(make()))
            self._unrecorded(gc.collect)
        grown = self._leaks.wait_for(before, self._record.descriptors(), LEAVE_WITHIN_S, first)
        for kind, found in ((Kind.LEFTOVER, grown), (Kind.KEPT, self._leaks.beyond(grown, first))):
            for what, name in found:
                self._record(kind, flags=what, aux=self._record.text(type="leftover", message=name))

    def _consume_again(self, built: Built) -> None:
        iterator = iter(built.loader)
        for step in range(self._spec.call_cap):
            if next(iterator, None) is None or self._spec.break_after == step + 1:
                break
        del iterator
        _close(built.loader)

    def _unrecorded(self, call: Callable[[], Any]) -> None:
        """Run the loader's code; what it raises says nothing about the recorded round."""
        with contextlib.suppress(BaseException):
            self._hand_over()
            call()
        self._take_back()

    def _length(self, loader: Any, phase: int) -> None:
        if not hasattr(type(loader), "__len__"):
            return
        length, error = self.guarded(lambda: _length_of(loader), Where.LENGTH)
        if error is None and length is not None:
            self._record(Kind.LENGTH, int(length), flags=phase)

    def _one_epoch(self, built: Built) -> None:
        self._step = 0
        self._record(Kind.EPOCH, epoch=self._epoch)
        if built.set_epoch is not None:
            self.guarded(lambda: built.set_epoch(self._epoch) if built.set_epoch else None, Where.ITER)
        iterator, _ = self.guarded(lambda: iter(built.loader), Where.ITER)
        if iterator is not None:
            self._drain(iterator)
        self._record(Kind.EPOCH_DONE, epoch=self._epoch)
        self._reported(built.loader)
        box = [iterator]
        del iterator
        self._record(Kind.CLOSING, epoch=self._epoch)
        self.guarded(box.clear, Where.CLOSE)
        self.guarded(gc.collect, Where.CLOSE)
        self._record(Kind.CLOSED, epoch=self._epoch)

    def _drain(self, iterator: Iterator[Any]) -> None:
        errors = 0
        nothing = object()
        while True:
            if self._step >= self._spec.call_cap or errors > self._spec.error_cap:
                self._gave_up(Cap.ERRORS if errors > self._spec.error_cap else Cap.CALLS)
                return
            self._record(Kind.DELAY, _run_delay_ns())
            self._record(Kind.ASK, aux=self._step, epoch=self._epoch)
            batch, error = self.guarded(lambda: next(iterator), Where.NEXT, nothing)
            self._record(Kind.DELAY, _run_delay_ns())
            if isinstance(error, StopIteration):
                self._record(Kind.END, aux=self._step, epoch=self._epoch)
                return
            if batch is not nothing:
                errors = 0
                self._got(batch)
            if error is not None:
                errors += 1
            del batch, error
            if self._spec.break_after == self._step + 1 and self._epoch == 0:
                self._record(Kind.BROKE, aux=self._step, epoch=self._epoch)
                return
            if self._spec.step_s:
                self.guarded(lambda: time.sleep(self._spec.step_s), Where.OUTSIDE)  # the training step itself
            self._together()
            self._step += 1

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
            # Not a batch that any reader knows: the loader's affair, told with the error that reading it gave.
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
        except RuntimeError as error:  # gloo's only class for: timed out, or the peer has gone
            self._record(Kind.WAITED, aux=self._step, sample=self._record.error(error), epoch=self._epoch)
            self._lockstep = None

    def _reported(self, loader: Any) -> None:
        reported, _ = self.guarded(lambda: _skipped(loader), Where.REPORT)
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


def _length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # the protocol's way to say that there is no length (PEP 424)
        return None


def _close(loader: Any) -> None:
    close = getattr(loader, "close", None)
    if callable(close):
        close()


class Skipped(NamedTuple):
    """What a loader reports as skipped."""

    total: int
    ids: list[int]
    """Those that it names."""
    reasons: list[tuple[str, int]]
    """Each reason with the number of its skips, where it gives reasons."""


def _skipped(loader: Any) -> Skipped | LoaderError | None:
    """What the loader reports; an error where it makes no sense; None where there is no such attribute."""
    if not hasattr(loader, "skipped"):
        return None
    value = loader.skipped
    try:
        return read_skipped(value() if callable(value) else value)
    except LoaderError as error:
        return error


def read_skipped(value: Any) -> Skipped:
    """Count, ids and reasons of a loader's ``skipped``: a count, a list of ids, or a mapping from reason to either.

    Raises:
        LoaderError: something else.
    """
    if isinstance(value, Mapping):
        parts = {reason: read_skipped(part) for reason, part in value.items()}
        ids = [sample for part in parts.values() for sample in part.ids]
        reasons = [("" if reason is None else str(reason), part.total) for reason, part in parts.items() if part.total]
        return Skipped(sum(part.total for part in parts.values()), ids, reasons)
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        if hasattr(value, "__iter__") and getattr(value, "shape", None) != ():
            ids = [int(sample) for sample in value]
            return Skipped(len(ids), ids, [])
        return Skipped(int(value), [], [])
    except (TypeError, ValueError, OverflowError):
        raise LoaderError(
            f"loader.skipped is {repr(value)[:200]}: must be a count, a list of ids, or a mapping of either"
        ) from None


def _run_delay_ns() -> int:
    """Nanoseconds that this thread was ready to run and waited for a processor, since it began (Linux only, else 0)."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
