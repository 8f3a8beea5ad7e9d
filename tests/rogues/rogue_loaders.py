"""Loaders that misbehave, each in one way, during their second batch. The tests of the supervisor run them."""

from __future__ import annotations

import multiprocessing.resource_tracker
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import shared_memory
from multiprocessing.connection import Listener
from typing import Any

import torch
from badbatch.harness import Job, loader
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info

KEPT: list[Any] = []  # what must not be collected before its process dies


class Misbehaving:
    """Reads the data set itself, batch by batch, and does its deed before the second one."""

    def __init__(self, job: Job, deed: Callable[[], Any]) -> None:
        self._job = job
        self._deed = deed

    def __iter__(self) -> Iterator[Any]:
        dataset: Any = self._job.dataset
        for start in range(0, self._job.samples, self._job.batch_size):
            if start == self._job.batch_size:
                self._deed()
            stop = min(start + self._job.batch_size, self._job.samples)
            yield default_collate([dataset[sample] for sample in range(start, stop)])


def rogue(deed: Callable[[], Any]) -> Callable[[Job], Any]:
    """Turn a deed into a loader factory."""

    @loader(on_damage="raise")
    def factory(job: Job) -> Misbehaving:
        return Misbehaving(job, deed)

    return factory


def forever() -> None:
    """Wait for what never comes."""
    threading.Event().wait()


def daemon(work: Callable[[], None] = forever) -> None:
    """Leave the process family as daemons do: fork twice, with a new session in between."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            deaf()
            os.chdir("/")
            os.closerange(0, 4096)
            work()
        os._exit(0)
    os.wait()


def deaf() -> None:
    """Ignore every signal that can be ignored."""
    for signum in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(signum, signal.SIG_IGN)
        except OSError:  # kept by the C library for itself
            continue


@rogue
def well() -> None:
    """It does nothing wrong."""


@rogue
def naps() -> None:
    """It is slow with the second batch."""
    time.sleep(0.5)


class Remembering:
    """Knows how many batches it delivered, and continues from there; refuses the state of another number of ranks."""

    def __init__(self, job: Job, obeys: bool) -> None:
        self._job = job
        self._obeys = obeys
        self._next = 0

    def __iter__(self) -> Iterator[Any]:
        dataset: Any = self._job.dataset
        size = self._job.batch_size
        while self._next * size < self._job.samples:
            samples = range(self._next * size, min((self._next + 1) * size, self._job.samples))
            self._next += 1
            yield default_collate([dataset[sample] for sample in samples])
        self._next = 0

    def state_dict(self) -> dict[str, int]:
        return {"next": self._next, "ranks": self._job.world_size}

    def load_state_dict(self, state: dict[str, int]) -> None:
        if state["ranks"] != self._job.world_size:
            raise ValueError("another number of ranks")
        if self._obeys:
            self._next = state["next"]


@loader(on_damage="raise")
def remembers(job: Job) -> Remembering:
    return Remembering(job, obeys=True)


@loader(on_damage="raise")
def forgets(job: Job) -> Remembering:
    return Remembering(job, obeys=False)


@rogue
def busy() -> None:
    while True:
        pass


@rogue
def stalls() -> None:
    time.sleep(3600)


@rogue
def ignores_signals() -> None:
    deaf()
    forever()


@rogue
def leaves_daemons() -> None:
    for _ in range(3):
        daemon()


@rogue
def leaves_daemons_and_stalls() -> None:
    daemon()
    forever()


def hop() -> None:
    """Fork and exit, again and again: no process lives long enough to be looked at twice."""
    while os.fork() == 0:
        continue
    os._exit(0)


@rogue
def leaves_what_hops() -> None:
    daemon(hop)
    forever()


@rogue
def prints() -> None:
    for stream in (1, 2):
        for _ in range(24):
            os.write(stream, (b"x" * 1023 + b"\n") * 1024)
    sys.stdout.write("the last line\n")


@rogue
def fills_a_pipe() -> None:
    process = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    KEPT.append(process)
    process.wait()


@rogue
def fills_its_own_output() -> None:
    reader, writer = os.pipe()
    KEPT.append(reader)
    os.dup2(writer, 1)
    while True:
        sys.stdout.write("x" * 4096)


@rogue
def exits_with_0() -> None:
    os._exit(0)


@rogue
def exits_with_3() -> None:
    os._exit(3)


@rogue
def closes_all_descriptors() -> None:
    os.closerange(3, 4096)


@rogue
def closes_all_descriptors_and_stalls() -> None:
    os.closerange(0, 4096)
    forever()


@rogue
def stops_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@rogue
def stops_its_supervisor() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    forever()


@rogue
def kills_its_supervisor() -> None:
    daemon()
    os.kill(os.getppid(), signal.SIGKILL)
    forever()


@rogue
def changes_everything() -> None:
    os.chdir("/")
    os.umask(0o777)
    os.environ.clear()
    tempfile.tempdir = "/nowhere"
    deaf()
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    signal.signal(signal.SIGUSR1, lambda signum, frame: 1 / 0)
    sys.stdin = sys.stdout = None
    sys.stderr.close()


@rogue
def keeps_shared_memory() -> None:
    """A segment and a semaphore that only multiprocessing's resource tracker removes."""
    segment = shared_memory.SharedMemory(create=True, size=4096)
    lock: Any = multiprocessing.get_context("spawn").Lock()
    KEPT.extend((segment, lock))
    sys.stdout.write(f"/dev/shm/{segment.name.lstrip('/')} /dev/shm/sem.{lock._semlock.name.lstrip('/')}\n")
    sys.stdout.flush()
    forever()


@rogue
def loses_its_tracker() -> None:
    """A semaphore whose resource tracker is dead, so that nobody is left who would remove it."""
    lock: Any = multiprocessing.get_context("spawn").Lock()
    KEPT.append(lock)
    tracker: Any = multiprocessing.resource_tracker._resource_tracker
    os.kill(tracker._pid, signal.SIGKILL)
    sys.stdout.write(f"/dev/shm/sem.{lock._semlock.name.lstrip('/')}\n")
    sys.stdout.flush()
    forever()


@rogue
def keeps_a_tensor_file() -> None:
    """A segment of torch's, kept by a manager that torch starts as a daemon."""
    sharing: Any = torch.multiprocessing
    sharing.set_sharing_strategy("file_system")
    tensor: Any = torch.zeros(1000)
    KEPT.append(tensor.share_memory_())
    names = [name for name in os.listdir("/dev/shm") if name.startswith(f"torch_{os.getpid()}_")]
    sys.stdout.write(" ".join(f"/dev/shm/{name}" for name in names) + "\n")
    sys.stdout.flush()
    forever()


@rogue
def leaves_files() -> None:
    folder = tempfile.mkdtemp(prefix="cache-")
    with open(os.path.join(folder, "kept"), "w", encoding="utf-8") as file:
        file.write("x")


@rogue
def listens_in_its_temporary_folder() -> None:
    folder = tempfile.mkdtemp(prefix="pymp-")
    with Listener(os.path.join(folder, "listener-12345678"), "AF_UNIX"):
        pass
    os.rmdir(folder)
    name = os.path.join(tempfile.gettempdir(), "n" * 80)  # the longest name that a library may give
    with Listener(name, "AF_UNIX"):
        pass


@rogue
def leaves_a_child() -> None:
    if os.fork() == 0:
        forever()


@rogue
def raises_system_exit() -> None:
    raise SystemExit(4)


@rogue
def raises_keyboard_interrupt() -> None:
    raise KeyboardInterrupt


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no word of it")


@rogue
def raises_what_has_no_words() -> None:
    raise UnspeakableError


class Awkward(Misbehaving):
    """Everything except its batches fails."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, lambda: None)

    def __len__(self) -> int:
        raise RuntimeError("no length today")

    @property
    def skipped(self) -> Any:
        raise RuntimeError("no count today")

    @property
    def close(self) -> Any:
        raise RuntimeError("no end today")


@loader(on_damage="raise")
def awkward(job: Job) -> Awkward:
    return Awkward(job)


class Reasoned(Misbehaving):
    """Leaves out what cannot be read, gives the error once and an empty reason once, and reports a mapping from reasons."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, lambda: None)
        self.skipped = {"too short": [1, 2], None: 1}

    def __iter__(self) -> Iterator[Any]:
        dataset: Any = self._job.dataset
        told = False
        for sample in range(self._job.samples):
            try:
                yield default_collate([dataset[sample]])
            except OSError as error:
                self._job.on_skip(sample, "" if told else error)
                told = True


@loader(on_damage="skip")
def reasoned(job: Job) -> Reasoned:
    return Reasoned(job)


class Babbling(Misbehaving):
    skipped = ("one", "two")

    def __init__(self, job: Job) -> None:
        super().__init__(job, lambda: None)


@loader(on_damage="skip")
def babbling(job: Job) -> Babbling:
    return Babbling(job)


def returns_none(job: Job) -> None:
    return None


def without_ids(job: Job) -> list[Any]:
    return [{"picture": torch.zeros(4, 3, 3)}] * 3


class Unreadable(dict[str, Any]):
    def __contains__(self, key: object) -> bool:
        raise SystemExit("hands\noff")


def unreadable(job: Job) -> list[Any]:
    return [Unreadable()] * 3


class Unspeakable(dict[str, Any]):
    def __contains__(self, key: object) -> bool:
        raise UnspeakableError


def unspeakable(job: Job) -> list[Any]:
    return [Unspeakable()] * 3


class ClosingInWorkers(Dataset[Any]):
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, sample: int) -> Any:
        if sample == 5 and get_worker_info() is not None:
            os.closerange(3, 4096)
        return self._dataset[sample]


def closes_descriptors_in_workers(job: Job) -> Any:
    return DataLoader(
        ClosingInWorkers(job.dataset), batch_size=job.batch_size, num_workers=job.num_workers, timeout=job.timeout
    )


def torch_loader(job: Job) -> Any:
    return DataLoader(
        job.dataset,  # type: ignore[arg-type]
        batch_size=job.batch_size,
        num_workers=job.num_workers,
        sampler=None if job.world_size == 1 else range(job.rank, job.samples, job.world_size),
        multiprocessing_context=job.start_method,
    )
