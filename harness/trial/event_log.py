"""The crash-proof event log: one ``write(2)`` a record, by any process of a trial, at any moment.

Records are fixed-size and binary, and the file is opened with ``O_APPEND``, so records of several processes never
interleave and those written before a SIGKILL survive it. Texts (messages, tracebacks) lie beside, one JSON line each.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import fcntl
import itertools
import json
import os
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

RECORD = np.dtype(
    [
        ("time", "<i8"),  # CLOCK_MONOTONIC, nanoseconds: comparable between the processes of one machine
        ("sample", "<i8"),  # a sample id, or the number that the kind says
        ("aux", "<i4"),  # what the kind says
        ("pid", "<i4"),
        ("worker", "<i2"),  # -1: not in a worker of torch's kind
        ("epoch", "<i2"),  # -1: written by a reader, who does not know it
        ("kind", "u1"),
        ("flags", "u1"),
        ("rank", "<u2"),
    ]
)
_PACK = struct.Struct("<qqiihhBBH").pack
_HIGH_DESCRIPTOR = 700  # out of the way of a loader that closes or reuses the low ones
_LATELY = 256  # texts
_TEXT_NUMBERS = itertools.count(1)  # of all recorders in this process: one that came with a copied data set has the same pid

class Kind(enum.IntEnum):
    """What happened. The comments say what ``sample``, ``aux`` and ``flags`` hold."""

    BUILDING = 1  # the factory is being called
    BUILT = 2  # it returned
    LENGTH = 3  # sample: len(loader); flags: 0 before the first epoch, 1 after it
    EPOCH = 4  # the consumer is about to call iter()
    ASK = 5  # the consumer is about to call next(); aux: step; sample: ns it waited for a processor so far
    GOT = 6  # next() returned a batch; sample: its size; aux: step
    ARRIVED = 7  # one sample of that batch; sample: id or -1; aux: step; flags: Content
    RAISED = 8  # an error reached the consumer; sample: step; aux: text; flags: Where
    END = 9  # StopIteration; aux: step
    CAPPED = 10  # the consumer gave up; aux: step; flags: Cap
    BROKE = 11  # the consumer left the epoch on purpose; aux: step
    EPOCH_DONE = 12
    READ = 13  # a read of a sample begins; aux: the thread; flags: 1 in another thread than the main one of its process
    READ_DONE = 14  # it returned, or (flags: 1) raised; aux: then the error's text
    FAULT = 15  # the fault of this sample takes hold now
    SKIPPED = 16  # the loader called on_skip; aux: text
    REPORTED = 17  # an entry of loader.skipped; sample: id or -1; aux: count; flags: 1 for the line with the total
    CLOSING = 18  # the consumer begins to drop an epoch's iterator, or (flags: 1) to close and drop the loader
    CLOSED = 19
    LEFTOVER = 20  # something of the loader remains after closing; aux: text; flags: Remains
    WAITED = 21  # in lock step: the other ranks never came to this step; aux: step
    FINISHED = 22  # the consumer of this rank ran to its end
    UNREADABLE = 23  # a batch whose ids could not be found; aux: text; sample: step
    DELAY = 24  # sample: nanoseconds that the consumer's thread waited for a processor so far (schedstat)
    FIELDS = 25  # which fields a sample from disk came with; sample: id or -1; aux: a bit for each of storedbatch.FIELDS
    KEPT = 27  # something of the loader that is there once, however many loaders are built; aux: text; flags: Remains
    REASON = 26  # a reason that loader.skipped gives; sample: for how many skips; aux: text


class Content(enum.IntFlag):
    """What a delivered sample turned out to be."""

    WHOLE = 1  # it is the sample, field by field
    WRONG = 2  # it is not what was written, or its fields belong to different samples
    UNCHECKED = 4  # the batch carries no content beside the id
    MARKED = 8  # it arrives marked as missing
    MIXED = 16  # with WRONG: some of its fields belong to another sample


class Where(enum.IntEnum):
    """In which call an error reached the consumer."""

    NEXT = 0
    ITER = 1
    OUTSIDE = 2  # in a line of the consumer's own, out of a signal handler
    FACTORY = 3
    CLOSE = 4
    LENGTH = 5
    REPORT = 6
    DISTRIBUTED = 7


class Cap(enum.IntEnum):
    """Why the consumer gave an epoch up."""

    CALLS = 0  # far more calls of next() than the epoch can need
    ERRORS = 1  # the errors come without a batch between them


class Remains(enum.IntEnum):
    """What was left behind."""

    PROCESS = 0
    THREAD = 1
    SHARED_MEMORY = 2
    DESCRIPTOR = 3
    FILE = 4


class Recorder:
    """Writes records and texts of one rank; usable in, and picklable to, any process of the trial.

    Args:
        folder: the trial's folder; records go to ``events-<rank>.bin`` and texts to ``texts-<rank>.jsonl`` in it.
    """

    def __init__(self, folder: str | Path, rank: int = 0) -> None:
        self._folder = str(folder)
        self._rank = rank
        self._events = -1
        self._texts = -1
        self._pid = 0
        self._worker = -1
        self._said: dict[bytes, int] = {}

    def __getstate__(self) -> tuple[str, int]:
        return self._folder, self._rank

    def __setstate__(self, state: tuple[str, int]) -> None:
        Recorder.__init__(self, *state)

    def __call__(self, kind: int, sample: int = -1, aux: int = 0, flags: int = 0, epoch: int = -1) -> None:
        """Append one record, stamped with now. A number beyond its field's width is recorded as the nearest within it."""
        now = time.monotonic_ns()
        pid = os.getpid()
        if pid != self._pid:
            self._enter_process(pid)
        try:
            record = _PACK(now, sample, aux, pid, self._worker, epoch, kind, flags, self._rank)
        except struct.error:  # a number that the loader made up
            record = _PACK(now, _fit(sample, 64), _fit(aux, 32), pid, self._worker, epoch, kind, flags, self._rank)
        try:
            os.write(self._events, record)
        except OSError as error:
            self._open_again(error)
            os.write(self._events, record)

    def many(self, kind: int, samples: Any, aux: Any, flags: Any, epoch: int) -> None:
        """Append one record for each of ``samples`` (int array), all stamped with now, in one write.

        ``aux`` and ``flags`` are one number for all of them, or an array with one for each.
        """
        now = time.monotonic_ns()
        pid = os.getpid()
        if pid != self._pid:
            self._enter_process(pid)
        records = np.empty(len(samples), RECORD)
        records["time"] = now
        try:
            records["sample"] = samples
        except OverflowError:
            records["sample"] = [_fit(sample, 64) for sample in samples]
        records["aux"] = aux
        records["pid"] = pid
        records["worker"] = self._worker
        records["epoch"] = epoch
        records["kind"] = kind
        records["flags"] = flags
        records["rank"] = self._rank
        data = records.tobytes()
        try:
            os.write(self._events, data)
        except OSError as error:
            self._open_again(error)
            os.write(self._events, data)

    def text(self, **fields: Any) -> int:
        """Store one text record beside the events; returns its number, unique within this process.

        What was said lately is not stored again: a loader that tries a bad sample again without end must not fill the disk.
        """
        pid = os.getpid()
        if pid != self._pid:
            self._enter_process(pid)
        said = json.dumps(fields, default=str).encode("ascii")
        number = self._said.get(said)
        if number is not None:
            return number
        number = next(_TEXT_NUMBERS)  # one step of the interpreter: two threads never get the same
        # The line's end comes first: so a text that was torn by a kill spoils itself alone, and not the next.
        data = b"\n" + json.dumps({"pid": pid, "n": number, **fields}, default=str).encode("ascii")
        try:
            os.write(self._texts, data)
        except OSError as error:
            self._open_again(error)
            os.write(self._texts, data)
        if len(self._said) >= _LATELY:
            self._said.clear()
        self._said[said] = number
        return number

    def error(self, error: BaseException | str) -> int:
        """Store an exception's class, message and traceback (or a mere message); returns the text's number."""
        if isinstance(error, str):
            return self.text(type="str", message=error[:4000])
        cls = type(error)
        message = _message(error)
        try:
            trace = "".join(traceback.format_exception(cls, error, error.__traceback__))
        except BaseException as broken:
            trace = f"<its traceback cannot be formatted: {type(broken).__name__}>"
        bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__ if base is not object]
        fields: dict[str, Any] = {"type": f"{cls.__module__}.{cls.__qualname__}", "bases": bases, "message": message[:4000]}
        causes = [
            {"type": f"{type(cause).__module__}.{type(cause).__qualname__}", "message": _message(cause)[:1000]}
            for cause in _causes(error)
        ]
        if causes:
            fields["causes"] = causes
        return self.text(**fields, traceback=trace[-8000:])

    def close(self) -> None:
        """Give the descriptors back; a later record opens them again."""
        for descriptor in (self._events, self._texts):
            with contextlib.suppress(OSError):  # never opened, or the loader closed it
                os.close(descriptor)
        self._events = self._texts = -1

    def descriptors(self) -> set[int]:
        """The descriptors that the record itself holds in this process."""
        return {self._events, self._texts}

    def _enter_process(self, pid: int) -> None:
        self._said.clear()
        data = sys.modules.get("torch.utils.data")
        info = data.get_worker_info() if data is not None else None
        self._worker = -1 if info is None else info.id
        if self._events < 0:
            self._open()
        self._pid = pid  # last: another thread must not find it set before the rest

    def _open(self) -> None:
        self._events = open_high(os.path.join(self._folder, f"events-{self._rank}.bin"), _HIGH_DESCRIPTOR)
        self._texts = open_high(os.path.join(self._folder, f"texts-{self._rank}.jsonl"), _HIGH_DESCRIPTOR)

    def _open_again(self, error: OSError) -> None:
        """After the loader closed a descriptor of ours. Both anew: the number of the one may by now be that of the other."""
        if error.errno != errno.EBADF:
            raise error
        self._open()


def open_high(path: str | Path, least: int) -> int:
    """Open a file for appending, at a descriptor not below ``least``: where a loader's own hardly ever are."""
    low = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, least)
    except OSError:  # a low limit of open files: stay where we are
        return low
    os.close(low)
    return high


def _fit(number: int, bits: int) -> int:
    """The nearest signed integer of so many bits."""
    return max(-(1 << (bits - 1)), min(int(number), (1 << (bits - 1)) - 1))


_CAUSES = 5  # errors behind an error: more say nothing new


def _causes(error: BaseException) -> list[BaseException]:
    """The errors behind an error, as a traceback shows them: the explicit cause, or else what was being handled."""
    found: list[BaseException] = []
    now: BaseException | None = error
    while now is not None and len(found) <= _CAUSES:
        found.append(now)
        now = now.__cause__ or (None if now.__suppress_context__ else now.__context__)
        if any(now is one for one in found):
            break
    return found[1:]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # a message that cannot be made is the loader's affair, not the record's end
        return f"<str() of it raised {type(broken).__name__}>"
