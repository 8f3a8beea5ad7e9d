"""Runs trials, many at once and in any order.

Knows nothing about checks: suite, comparison, search and audit build on it.
"""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from ...harness.contract.choices import Isolation
from ...harness.errors import HarnessError, UserError
from ...harness.processes.shared_memory import Conditions
from ...harness.processes.supervisor import Supervisor
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ...harness.trial.torn import UNWRITABLE
from ..judging.doubts import disturbance
from .artifacts import slug
from .forking import Forking
from .shared_names import SharedNames
from .tasks import Done, Task, UnderWay, record

_WAITING_PER_BUSY = 16  # trials that mostly wait need little processor time: run this many for each that computes
_BEGINNING_S = 1.0  # but starting one costs as much as any other, for at least this long
_READABLE = 24  # letters of a trial's name in that of its folder: enough to recognise it
_POLL_S = 0.2
_RESTARTS = 5  # of the zygote, if no trial ended between them
_TRIES = 3  # how often a trial may be lost, or killed by the machine, before it is reported as such


class Pool:
    """Runs trials of one loader.

    >>> with Pool("torch.utils.data:DataLoader") as pool:   # doctest: +SKIP
    ...     for spec, history in pool.run(specs):
    ...         print(spec.id, history.ended)

    A trial whose processes are killed together with the engine's is run again, and so is one that was not started yet.

    Args:
        loader: ``pkg.module:attr``.
        directory: the folder that is importable, in addition to what is installed.
        sources: globs of the sources that the trials offer; none: any that the loader declares.
        jobs: how many trials may compute at once; None: one more than there are processors.
    """

    def __init__(
        self,
        loader: str,
        directory: str | Path = ".",
        isolation: Isolation = "auto",
        *,
        sources: Sequence[str] = (),
        jobs: int | None = None,
    ) -> None:
        self.loader = loader
        self.directory = os.path.abspath(directory)
        self._isolation = isolation
        self._sources = tuple(sources)
        self._jobs = jobs or (os.cpu_count() or 1) + 1
        self._supervisor: Supervisor | None = None
        self._queue: list[tuple[float, int, Task]] = []
        self._alone: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()
        self._under_way: dict[int, UnderWay] = {}
        self._over: collections.deque[tuple[int, Path]] = collections.deque()
        self._folders = 0
        self._restarts = 0
        self._forking = Forking()
        self._started_as = "", ""
        self._names = SharedNames(possible=False)
        try:
            self.scratch = Path(tempfile.mkdtemp(prefix="badbatch-"))
        except OSError as error:  # tempfile itself tries several folders, and its message lists them
            raise UserError(f"cannot make a temporary folder: {error.strerror or error}; TMPDIR names another place") from error

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the running trials and remove what they wrote."""
        self._names.give_back_turn()
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self) -> Supervisor:
        """Import the loader, unless it is imported; returns the supervisor.

        Raises:
            LoaderError: the loader cannot be imported, or is not a loader.
        """
        if self._supervisor is None:
            self._supervisor = Supervisor(
                self.loader, self.directory, self._isolation, sources=self._sources, scratch=self.scratch
            )
            self._started_as = self._supervisor.isolation, self._supervisor.isolation_why
            self._names.possible = self._supervisor.can_be_private
        return self._supervisor

    @property
    def isolation(self) -> str:
        """``fork`` or ``spawn``: how trials are started now."""
        return "spawn" if self._forking.why else self._started_as[0]

    @property
    def isolation_why(self) -> str:
        """Why it is not ``fork``; empty if it is."""
        return self._forking.why or self._started_as[1]

    @property
    def about_shared_memory(self) -> str:
        """How trials are kept apart because of fixed names in ``/dev/shm``; empty: they need not be."""
        return self._names.about

    @property
    def separates(self) -> bool:
        """Whether a trial can have a ``/dev/shm`` of its own."""
        return self._names.possible

    @property
    def may_learn_to_spawn(self) -> bool:
        """Whether trials are forks, and the user left that open."""
        return self._isolation == "auto" and self.isolation == "fork"

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor; it exists after :meth:`start` was called."""
        if self._supervisor is None:
            raise RuntimeError("start() has not been called")
        return self._supervisor

    def submit(self, task: Task) -> None:
        """Queue a trial."""
        heapq.heappush(self._alone if task.alone else self._queue, (task.order, next(self._numbers), task))

    def drop(self, task: Task) -> None:
        """End a trial, or do not start it; it is never reported."""
        for queue in (self._queue, self._alone):
            queue[:] = [entry for entry in queue if entry[-1] is not task]
            heapq.heapify(queue)
        for number, run in list(self._under_way.items()):
            if run.task is task:
                del self._under_way[number]
                with contextlib.suppress(HarnessError):  # the zygote has died, and the trial with it
                    self.supervisor.stop(number)

    def cancel(self) -> None:
        """Start none of the queued trials, and end the running ones."""
        self._queue.clear()
        self._alone.clear()
        self._under_way.clear()
        self._names.give_back_turn()
        if self._supervisor is not None:
            self._supervisor.close(keep_scratch=True)
            self._supervisor = None

    def run(self, specs: Iterable[TrialSpec], *, gate: bool = False) -> Iterator[tuple[TrialSpec, History]]:
        """Run trials, and yield each with its history when it ends, in the order in which they end.

        The trial's folder is removed when the next one is requested. Leaving the iterator early ends the other trials.

        Args:
            gate: others wait for them.
        """
        self.start()
        for spec in specs:
            self.submit(Task(lambda spec=spec: spec, gate=gate, watched=True))  # type: ignore[misc]
        try:
            while self.busy:
                for done in self.advance():
                    assert done.task.spec is not None
                    yield done.task.spec, done.history
                    shutil.rmtree(done.folder, ignore_errors=True)
        finally:
            if self.busy:
                self.cancel()

    def histories(self, specs: Iterable[TrialSpec], *, gate: bool = False) -> list[History]:
        """The histories of some trials, in their order.

        Args:
            gate: others wait for them.

        Raises:
            UserError: there is no space for their records.
        """
        asked = list(specs)
        try:
            found = {id(spec): history for spec, history in self.run(asked, gate=gate)}
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise self._no_space(error.strerror or str(error)) from error
        for history in found.values():
            if history.torn:
                raise self._no_space(history.torn)
        return [found[id(spec)] for spec in asked]

    def unwritable(self, why: str) -> str:
        """One line that says that the temporary folder cannot be written to."""
        return f"the temporary folder {self.scratch.parent} cannot be written to: {why}"

    def _no_space(self, why: str) -> UserError:
        return UserError(f"{self.unwritable(why)}; TMPDIR names another")

    @property
    def busy(self) -> bool:
        """Whether a trial is queued or running."""
        return bool(self._queue or self._alone or self._under_way or self._over)

    def advance(self, timeout_s: float = _POLL_S) -> Iterator[Done]:
        """Start the trials that can start, and yield those that have ended; waits up to ``timeout_s`` for them.

        Raises:
            HarnessError: the zygote was killed too often.
        """
        try:
            self._begin_more()
            for trial in self.supervisor.finished(timeout_s):
                self._over.append(trial)
                self._restarts = 0
        except HarnessError:
            self._over += self._start_again()
        while self._over:  # stored on the object, so that an error of the caller over one of them does not lose the others
            number, folder = self._over.popleft()
            if number in self._under_way:
                run = self._under_way.pop(number)
                if not self._under_way:
                    self._names.give_back_turn()
                yield from self._ended(run, folder)

    def _ended(self, run: UnderWay, folder: Path) -> Iterator[Done]:
        task = run.task
        history = record(task, folder)
        done = Done(task, history, folder)
        if disturbance(history) and task.disturbed + 1 < _TRIES:
            task.disturbed += 1
            task.alone = not task.gate  # so that what disturbs it does not disturb other trials
            shutil.rmtree(folder, ignore_errors=True)
            self.submit(task)
        elif self._must_run_again(run, history):  # it was under way when something was found out
            shutil.rmtree(folder, ignore_errors=True)
            self.submit(task)
        elif task.gate and self.may_learn_to_spawn and task.forked is None and self._forking.doubts(history):
            task.forked = done
            self.submit(task)
        elif task.forked is not None:
            worse, better = (task.forked, done) if self._forking.compare(task.forked.history, history) else (done, task.forked)
            task.forked = None
            shutil.rmtree(worse.folder, ignore_errors=True)
            yield better
        else:
            yield done

    def _must_run_again(self, run: UnderWay, history: History) -> bool:
        """Learn from a trial; whether it must be run again, under conditions that were found to be necessary after it had started."""
        if run.conditions.watched:
            self._names.learn(history, wanted_private=run.conditions.private)
        met_others = bool(self._names.found) and not run.separate
        return met_others or (bool(self._forking.why) and not run.conditions.fresh)

    def _start_again(self) -> list[tuple[int, Path]]:
        """Start a new zygote in place of one that was killed; returns the trials that were lost with it.

        Raises:
            HarnessError: it has been killed too often.
        """
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise HarnessError(f"the process that runs the trials of {self.loader} was killed {self._restarts} times")
        lost = list(self.supervisor.folders().items())
        self.supervisor.close(keep_scratch=True)
        self._supervisor = None
        self.start()
        return lost

    def _begin_more(self) -> None:
        """Fill the places: few for trials that compute, many for those that wait.

        Each trial computes while it starts.
        """
        if any(run.task.alone for run in self._under_way.values()):
            return
        now = time.monotonic()
        busy = sum(_computes(run.task, now - run.since) for run in self._under_way.values())
        places = self._jobs * _WAITING_PER_BUSY - len(self._under_way)
        if self._names.one_at_a_time:
            if self._under_way or not self.busy or not self._names.take_turn():
                return
            places = 1
        while self._queue and busy < self._jobs and places > 0:
            if self._begin(self._queue):
                busy, places = busy + 1, places - 1
        if self._alone and not self._queue and not busy:
            self._begin(self._alone)
        if not self._under_way:
            self._names.give_back_turn()

    def _begin(self, queue: list[tuple[float, int, Task]]) -> bool:
        entry = heapq.heappop(queue)
        task = entry[-1]
        spec = task.spec = task.spec or task.begin()
        if spec is None:
            return False
        conditions = self._conditions(task)
        try:
            number = self.supervisor.start(spec, self.folder(spec.id), conditions)
        except HarnessError:
            heapq.heappush(queue, entry)
            raise
        self._under_way[number] = UnderWay(
            task, time.monotonic(), conditions, separate=conditions.private or self._names.one_at_a_time
        )
        return True

    def _conditions(self, task: Task) -> Conditions:
        """How a trial is run, from what is known of the loader."""
        watched = task.watched or task.gate
        return Conditions(
            fresh=bool(self._forking.why) or task.forked is not None,
            private=self._names.possible and (watched or bool(self._names.found)),
            watched=watched and not self._names.found,
        )

    def folder(self, name: str) -> Path:
        """A new path for a trial's folder, which does not exist yet."""
        self._folders += 1
        return self.scratch / f"{self._folders:05d}-{slug(name)[:_READABLE]}"


def _computes(task: Task, age: float) -> bool:
    return not task.waits or age < max(_BEGINNING_S, task.begins_s)
