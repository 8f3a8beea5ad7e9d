"""A loader that performs a story: it really does what ``history_dsl.py`` describes, call by call."""

from __future__ import annotations

import builtins
import itertools
import multiprocessing
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from badbatch.harness import Job, loader
from badbatch.harness.identity import rows
from torch.utils.data._utils import worker as torch_worker

from tests.stories import STORIES

_SPEAKER = re.compile(r"(?:r(\d+))?\.?(?:w(\d+))?:(?=.|$)")
_RAISE = re.compile(r"raise(?:@(\w+))?(?::(\w+))?(?::(\S+))?")
_BATCH = re.compile(r"[\d?~,-]+")
_AFTERWARDS = (
    "closing", "closed", "left:", "kept:", "len", "skipped", "capped", "break", "waited",
    "raise@report", "raise@close", "raise@length",
)
"""Words of what the consumer does between the calls, or of answers to other calls than next()."""


_BUILT = itertools.count()
"""The loaders that were built in this process."""


class Line(NamedTuple):
    """One word of the story, with the worker that speaks it; -1: the loader itself."""

    worker: int
    word: str


class Own(Exception):
    """An error of the library's own."""


Own.__module__ = "stories"


def lines_of(story: str, rank: int) -> list[Line]:
    """What one rank has to act."""
    found = []
    standing = (0, -1)
    for token in story.split():
        speaker = standing
        match = _SPEAKER.match(token)
        if match and match.group():
            speaker = (
                int(match.group(1) or (standing[0] if match.group(2) else 0)),
                -1 if match.group(2) is None else int(match.group(2)),
            )
            token = token[match.end() :]
            if not token:
                standing = speaker
                continue
        if speaker[0] == rank:
            found.append(Line(speaker[1], token))
    return found


def members(text: str) -> Iterator[tuple[int, str]]:
    """``0-3,5~,?`` as (id, sign) pairs."""
    for part in text.split(","):
        sign = part[-1] if part[-1] in "~?" else ""
        span = part.removesuffix(sign)
        first, _, last = span.partition("-")
        for sample in range(int(first or -1), int(last or first or -1) + 1):
            yield sample, sign


def batch_of(text: str) -> Any:
    """The batch that a word describes."""
    if text == "[]":
        return []
    if text == "unreadable":
        return {"picture": torch.zeros(4, 3)}
    found = list(members(text))
    if all(sample == -1 and sign == "?" for sample, sign in found):
        return [None] * len(found)
    ids = [sample for sample, _ in found]
    x = torch.from_numpy(rows(ids).copy())
    for place, (_, sign) in enumerate(found):
        if sign == "~":
            x[place] += 1
    batch = {"id": torch.tensor(ids), "x": x}
    if any(sign == "?" for _, sign in found):
        batch["missing"] = torch.tensor([sign == "?" for _, sign in found])
    return batch


def error_of(word: str, message: str) -> BaseException:
    """The error of a ``raise``; without its own words, with the message of the last fault."""
    match = _RAISE.fullmatch(word)
    assert match is not None, word
    name = match.group(2) or "OSError"
    cls = Own if name == "Own" else getattr(builtins, name)
    said = message if match.group(3) is None else match.group(3).replace("_", " ")
    error: BaseException = cls(said)
    return error


def read(job: Job, word: str) -> str:
    """Do what a reader does; the message of the error that a read raised, if one did."""
    match = re.fullmatch(r"(read|fault|skip)([\d,?-]+)", word)
    assert match is not None, f"{word!r} cannot be acted"
    message = ""
    dataset: Any = job.dataset
    for sample, _ in members(match.group(2)):
        if match.group(1) == "skip":
            job.on_skip(sample, "it cannot be read")
            continue
        try:
            dataset[sample]
        except Exception as error:  # noqa: BLE001 - whatever the fault raises
            message = str(error)
    return message


class Worker:
    """A process that reads on request, and is recorded as a worker of torch's."""

    def __init__(self, job: Job, number: int) -> None:
        self._here, there = multiprocessing.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            torch_worker._worker_info = torch_worker.WorkerInfo(id=number, num_workers=job.num_workers, seed=0, dataset=None)
            while True:
                there.send(read(job, there.recv()))

    def act(self, word: str, wait: bool) -> str:
        """Have it read; its answer, if it is waited for."""
        self._here.send(word)
        return self._here.recv() if wait else ""

    def end(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Unblocking(dict[str, Any]):
    """A batch that lets a blocked SIGCHLD through when it is dropped: between two calls of the loader."""

    def __del__(self) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


class Actor:
    """Acts the lines of one rank."""

    def __init__(self, job: Job, lines: list[Line], leaves: list[str]) -> None:
        self._job = job
        self._lines = lines
        self._workers: dict[int, Worker] = {}
        self._message = "a read failed"
        self._segments: list[list[Line]] = [[]]
        for line in lines:
            begins = line.word == "epoch" or line.word.startswith("raise@iter")
            if begins and any(not word.startswith("len") and "@length" not in word for _, word in self._segments[-1]):
                self._segments.append([])
            if line.word != "epoch":
                self._segments[-1].append(line)
        for word in leaves:
            name = word.rpartition(":")[2].replace("_", " ")
            if word.startswith("left:thread:") or (word.startswith("kept:thread:") and name not in _threads()):
                threading.Thread(target=threading.Event().wait, name=name, daemon=True).start()
            elif word.startswith("left:file:"):
                first, second = (Path(tempfile.gettempdir()) / each for each in (f"0{name}", name))
                (second if first.exists() else first).touch()

    def __iter__(self) -> Performance:
        segment = self._segments.pop(0)
        for _, word in segment:
            if word.startswith("raise@iter"):
                raise error_of(word, self._message)
        return Performance(self, segment)

    def said(self, start: str) -> list[str]:
        """The words that begin so."""
        return [word for _, word in self._lines if word.startswith(start)]

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()
        for word in self.said("raise@close"):
            raise error_of(word, self._message)

    def read(self, line: Line, wait: bool) -> None:
        """Have a sample read, by a worker or here."""
        if line.worker < 0:
            message = read(self._job, line.word)
        else:
            if line.worker not in self._workers:
                self._workers[line.worker] = Worker(self._job, line.worker)
            message = self._workers[line.worker].act(line.word, wait)
        self._message = message or self._message

    def error(self, word: str) -> BaseException:
        """The error of a word."""
        return error_of(word, self._message)


class Performance:
    """One epoch."""

    def __init__(self, actor: Actor, lines: list[Line]) -> None:
        self._actor = actor
        self._lines = [line for line in lines if not line.word.startswith(_AFTERWARDS) or line.word == "closing"]
        self._hangs = any(line.word == "closing" for line in lines) and any(line.word == "stalled" for line in lines)
        self._lines = [line for line in self._lines if line.word != "closing"]

    def __iter__(self) -> Performance:
        return self

    def __next__(self) -> Any:
        while True:
            line = self._lines.pop(0)
            word = line.word
            if word == "end":
                raise StopIteration
            if word.startswith("raise"):
                raise self._actor.error(word)
            if word in ("[]", "unreadable") or _BATCH.fullmatch(word):
                return self._outside(batch_of(word))
            if word == "deadline":
                while True:
                    continue
            if word == "stalled":
                threading.Event().wait()
            elif word.startswith("died:"):
                _die(int(word.partition(":")[2]))
            elif word != "ask":
                self._actor.read(line, wait=self._lines[:1] != [Line(-1, "ask")] or self._lines[1:2] != [Line(-1, "stalled")])

    def _outside(self, batch: Any) -> Any:
        """Where the next word says so, have an error come out of a signal handler once the consumer has the batch."""
        if not self._lines or not self._lines[0].word.startswith("raise@outside"):
            return batch
        error = self._actor.error(self._lines.pop(0).word)

        def raises(signum: int, frame: Any) -> None:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            raise error

        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        signal.signal(signal.SIGCHLD, raises)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGCHLD)
        return Unblocking(batch)

    def __del__(self) -> None:
        if self._hangs:
            time.sleep(3600)


def _die(code: int) -> None:
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        signal.pause()
    os._exit(code)


def _answers(actor: type[Actor], words: list[str]) -> type[Actor]:
    """The class of the actor with ``__len__`` and ``skipped`` where the story has them."""
    lengths = [word for word in words if re.fullmatch(r"len\d+|raise@length\S*", word)]
    reports = [word for word in words if word.startswith(("skipped", "raise@report"))]
    offered: dict[str, Any] = {}
    if lengths:

        def length(self: Actor) -> int:
            word = lengths.pop(0)
            if word.startswith("raise"):
                raise self.error(word)
            return int(word.removeprefix("len"))

        offered["__len__"] = length
    if reports:

        def skipped(self: Actor) -> Any:
            word = reports.pop(0)
            if word.startswith("raise"):
                raise self.error(word)
            if word.startswith("skipped:"):
                return [sample for sample, _ in members(word.removeprefix("skipped:"))]
            return int(word.removeprefix("skipped"))

        offered["skipped"] = skipped
    return type("Answering", (actor,), offered) if offered else actor


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",))
def act(job: Job) -> Actor:
    """Act the story whose number is the job's seed."""
    story, _ = STORIES[job.seed]
    leaves = [word for _, word in lines_of(story, job.rank) if word.startswith(("left:", "kept:"))]
    lines = lines_of(story.split(" rebuilt ")[next(_BUILT)], job.rank)
    words = [word for _, word in lines]
    for word in words:
        if word.startswith("raise@factory"):
            raise error_of(word, "")
    return _answers(Actor, words)(job, lines, leaves)
