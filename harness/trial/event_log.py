"""The crash-proof event log: one ``write(2)`` a record, by any process of a trial, at any moment.

A log is a header, and then records of the same size. Both are binary and little-endian, and the file is opened with
``O_APPEND``, so records of several processes never interleave, and those written before a SIGKILL survive it. Texts
(messages, tracebacks) are in a file beside it, one JSON line each. ``docs/event-log.md`` describes the format for programs
in other languages.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import struct
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UserError
from . import torn
from .event_kinds import Actor, Cap, Content, Kind, Remains, Where

__all__ = [  # the vocabulary is a part of the log: one import is enough
    "HEADER",
    "MAGIC",
    "RECORD",
    "VERSION",
    "Actor",
    "Cap",
    "Content",
    "Kind",
    "Recorder",
    "Remains",
    "Where",
    "begin_log",
    "open_high",
    "read_log",
]

RECORD = np.dtype(
    [
        ("time", "<i8"),  # CLOCK_MONOTONIC, nanoseconds: comparable between the processes of one machine
        ("sample", "<i8"),  # a sample id, or another number that depends on the kind
        ("aux", "<i4"),  # depends on the kind
        ("pid", "<i4"),
        ("worker", "i1"),  # -1: not in a worker of torch
        ("phase", "u1"),  # of the process that wrote it
        ("epoch", "<i2"),  # -1: written by a reader, which does not know it
        ("kind", "u1"),
        ("flags", "u1"),
        ("rank", "u1"),
        ("actor", "u1"),  # an Actor
    ]
)
_PACK = struct.Struct("<qqiibBhBBBB").pack
HEADER = struct.Struct("<8sHHIqq")  # magic, version, bytes of a record, rank, and one moment on the clock of the events and in Unix time
MAGIC = b"badbatch"
VERSION = 2
_FORMAT_1 = np.dtype(
    [
        *(("time", "<i8"), ("sample", "<i8"), ("aux", "<i4"), ("pid", "<i4"), ("worker", "<i2"), ("epoch", "<i2")),
        *(("kind", "u1"), ("flags", "u1"), ("rank", "<u2")),
    ]
)
"""Logs of format 1 have such records and no header."""
_HIGH_DESCRIPTOR = 700  # high, since loaders close or reuse low ones
_LATELY = 256  # texts
_TEXT_NUMBERS = itertools.count(1)  # of all recorders in this process: one in a copied data set has the same pid


class Recorder:
    """Writes records and texts of one rank; usable in, and picklable to, any process of the trial.

    Args:
        folder: the trial's folder; records go to ``events-<rank>.bin`` and texts to ``texts-<rank>.jsonl`` in it.
        phase: the number of the phase that the process is in; :meth:`enter_phase` changes it.
        actor: who writes; None: the process that makes the recorder is the rank's, and all others are workers.
    """

    def __init__(self, folder: str | Path, rank: int = 0, phase: int = 0, actor: Actor | None = None) -> None:
        self._folder = str(folder)
        self._rank = rank
        self._phase = phase
        self._actor = actor
        self._rank_pid = os.getpid()
        self._writes_as = Actor.RANK
        self._events = -1
        self._texts = -1
        self._pid = 0
        self._worker = -1
        self._said: dict[bytes, int] = {}

    def __getstate__(self) -> tuple[str, int, int, Actor | None, int]:
        return self._folder, self._rank, self._phase, self._actor, self._rank_pid

    def __setstate__(self, state: tuple[str, int, int, Actor | None, int]) -> None:
        *arguments, rank_pid = state
        Recorder.__init__(self, *arguments)  # type: ignore[arg-type]
        self._rank_pid = rank_pid

    def enter_phase(self, phase: int) -> None:
        """Record from now on as in this phase. Copies in other processes stay in theirs."""
        self._phase = phase

    def __call__(
        self, kind: int, sample: int = -1, aux: int = 0, flags: int = 0, epoch: int = -1, pid: int | None = None
    ) -> None:
        """Append one record with the present time.

        A number too large for its field is recorded as the nearest that fits.

        Args:
            pid: of the process that the record is about; None: this one.
        """
        now = time.monotonic_ns()
        own = os.getpid()
        if own != self._pid:
            self._enter_process(own)
        if pid is None:
            pid = own
        worker, phase, rank, actor = self._worker, self._phase, self._rank, self._writes_as
        try:
            record = _PACK(now, sample, aux, pid, worker, phase, epoch, kind, flags, rank, actor)
        except struct.error:  # an invalid number from the loader
            record = _PACK(now, _fit(sample, 64), _fit(aux, 32), pid, worker, phase, epoch, kind, flags, rank, actor)
        self._write(record)

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
        records["phase"] = self._phase
        records["epoch"] = epoch
        records["kind"] = kind
        records["flags"] = flags
        records["rank"] = self._rank
        records["actor"] = self._writes_as
        self._write(records.tobytes())

    def text(self, **fields: Any) -> int:
        """Store one text record beside the events; returns its number, unique within this process.

        A recent text is not stored again: a loader that retries a bad sample without end must not fill the disk.
        """
        pid = os.getpid()
        if pid != self._pid:
            self._enter_process(pid)
        said = json.dumps(fields, default=str).encode("ascii")
        number = self._said.get(said)
        if number is not None:
            return number
        number = next(_TEXT_NUMBERS)  # one step of the interpreter: two threads never get the same
        # The newline comes first: if a kill cuts a text, only that text is lost, and not the next.
        data = b"\n" + json.dumps({"pid": pid, "n": number, **fields}, default=str).encode("ascii")
        self._write(data, text=True)
        if len(self._said) >= _LATELY:
            self._said.clear()
        self._said[said] = number
        return number

    def error(self, error: BaseException | str) -> int:
        """Store an exception's class, message and traceback (or only a message); returns the text's number."""
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
        """Close the descriptors; a later record opens them again."""
        for descriptor in (self._events, self._texts):
            with contextlib.suppress(OSError):  # never opened, or the loader closed it
                os.close(descriptor)
        self._events = self._texts = -1

    def descriptors(self) -> set[int]:
        """The descriptors that the record itself uses in this process."""
        return {self._events, self._texts}

    def _enter_process(self, pid: int) -> None:
        self._said.clear()
        data = sys.modules.get("torch.utils.data")
        info = data.get_worker_info() if data is not None else None
        self._worker = -1 if info is None else _fit(info.id, 8)
        own = Actor.RANK if pid == self._rank_pid else Actor.WORKER
        self._writes_as = own if self._actor is None else self._actor
        if self._events < 0:
            self._open()
        self._pid = pid  # last: another thread must not find it set before the rest

    def _open(self) -> None:
        try:
            self._events = open_high(begin_log(self._folder, self._rank), _HIGH_DESCRIPTOR)
            self._texts = open_high(os.path.join(self._folder, f"texts-{self._rank}.jsonl"), _HIGH_DESCRIPTOR)
        except OSError as error:
            torn.note(self._folder, error)
            raise

    def _write(self, data: bytes, *, text: bool = False) -> None:
        """Append to the log or to the texts, in one write.

        Raises:
            OSError: it cannot be written; where the file system is full, the folder of the trial says so.
        """
        try:
            try:
                written = os.write(self._texts if text else self._events, data)
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                self._open()  # both: after the loader closed one, its number may be that of the other
                written = os.write(self._texts if text else self._events, data)
            if written < len(data):  # there was room for a part of it only
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            torn.note(self._folder, error)
            raise


def begin_log(folder: str | Path, rank: int) -> str:
    """Make the log of a rank, with its header, unless it exists; returns its path."""
    path = os.path.join(folder, f"events-{rank}.bin")
    if not os.path.exists(path):
        own = f"{path}.{os.getpid()}-{threading.get_ident()}"
        header = HEADER.pack(MAGIC, VERSION, RECORD.itemsize, rank, time.monotonic_ns(), time.time_ns())
        try:
            with open(own, "wb") as file:
                file.write(header)
            with contextlib.suppress(FileExistsError):  # another process or thread of the rank was first
                os.link(own, path)
        finally:
            os.unlink(own)
    return path


def read_log(path: str | Path) -> npt.NDArray[Any]:
    """The records of a log, of this format or of format 1; a torn last record is left out.

    Raises:
        UserError: the log has a format that this version does not know.
    """
    try:
        size = os.path.getsize(path)
    except FileNotFoundError:
        return np.empty(0, RECORD)
    with open(path, "rb") as file:
        head = file.read(HEADER.size)
    if not head.startswith(MAGIC):
        return _from_format_1(np.fromfile(path, _FORMAT_1, count=size // _FORMAT_1.itemsize))
    if len(head) < HEADER.size:
        return np.empty(0, RECORD)
    _, version, width, _, _, _ = HEADER.unpack(head)
    if version != VERSION or width != RECORD.itemsize:
        raise UserError(f"{path} is an event log of format {version}; this version of badbatch reads formats 1 and {VERSION}")
    number = (size - HEADER.size) // RECORD.itemsize
    if number == 0:
        return np.empty(0, RECORD)
    if size < 1 << 16:
        events: npt.NDArray[Any] = np.fromfile(path, RECORD, count=number, offset=HEADER.size)
    else:  # page in only the columns' pages that are looked at
        events = np.memmap(path, RECORD, mode="r", offset=HEADER.size, shape=(number,))
    return events


def _from_format_1(old: npt.NDArray[Any]) -> npt.NDArray[Any]:
    events = np.zeros(len(old), RECORD)
    for name in old.dtype.names or ():
        events[name] = old[name]
    return events


def open_high(path: str | Path, least: int) -> int:
    """Open a file for appending, at a descriptor of at least ``least``: a loader's own are hardly ever that high."""
    low = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, least)
    except OSError:  # a low limit of open files: keep the low descriptor
        return low
    os.close(low)
    return high


def _fit(number: int, bits: int) -> int:
    """The nearest signed integer of this many bits."""
    return max(-(1 << (bits - 1)), min(int(number), (1 << (bits - 1)) - 1))


_CAUSES = 5  # causes of an error: more add nothing new


def _causes(error: BaseException) -> list[BaseException]:
    """The causes of an error, as a traceback shows them: the explicit cause, otherwise what was being handled."""
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
    except BaseException as broken:  # a message that cannot be made is an error of the loader, and must not end the record
        return f"<str() of it raised {type(broken).__name__}>"
