"""Work distributed over processes, with results in the order of the tasks: bounded memory, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from ..errors import BadbatchError, HarnessError

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 4  # tasks by which a process may be ahead of the slowest


def ordered(function: Callable[[T], R], tasks: Iterable[T], jobs: int) -> Iterator[R]:
    """``map(function, tasks)``, computed by ``jobs`` processes (1: by this one), lazily.

    When the caller stops, by an exception or by closing the iterator, every process has ended before control returns.

    Raises:
        HarnessError: a process died. What ``function`` raised is raised again: errors of badbatch and of the operating
            system unchanged, others as HarnessError.
    """
    if jobs == 1:
        yield from map(function, tasks)
        return
    # Forking is quick, but safe only while no other thread can own a lock; macOS starts its own threads.
    safe = threading.active_count() == 1 and sys.platform == "linux"
    context: Any = multiprocessing.get_context("fork" if safe else "spawn")
    processes: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, ours if safe else None, function), daemon=True)
            process.start()
            theirs.close()
            processes[ours] = process
        yield from _collected(processes, enumerate(tasks))
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.join(5)
            process.kill()
            process.join()


def _collected(processes: dict[Connection, BaseProcess], tasks: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    idle = list(processes)
    working: dict[Connection, int] = {}
    ready: dict[int, Any] = {}
    given = due = 0
    exhausted = False
    while True:
        while idle and not exhausted and given < due + _AHEAD * len(processes):
            task = next(tasks, None)
            if task is None:
                exhausted = True
                break
            connection = idle.pop()
            working[connection] = task[0]
            given += 1
            _send(connection, task[1], processes)
        while due in ready:
            yield ready.pop(due)
            due += 1
        if not working:
            if exhausted:
                return
            continue
        for found in wait(list(working)):
            connection = cast(Connection, found)
            ready[working.pop(connection)] = _received(connection, processes)
            idle.append(connection)


def _send(connection: Connection, task: Any, processes: dict[Connection, BaseProcess]) -> None:
    try:
        connection.send(task)
    except OSError as error:
        raise _died(processes[connection]) from error


def _received(connection: Connection, processes: dict[Connection, BaseProcess]) -> Any:
    try:
        error, result = connection.recv()
    except (EOFError, OSError) as gone:
        raise _died(processes[connection]) from gone
    if error is not None:
        raise error
    return result


def _died(process: BaseProcess) -> HarnessError:
    process.join(5)
    code = process.exitcode
    how = f"was killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with code {code}"
    return HarnessError(
        f"a worker process {how}; with --jobs 1 one process does the work and shows the cause"
    )


def _serve(connection: Connection, other_end: Connection | None, function: Callable[[Any], Any]) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes; the first process decides what to do
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if other_end is not None:
        other_end.close()  # a copy that fork left here; while it is open, the death of the other side is not noticed
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        answer: tuple[BaseException | None, Any]
        try:
            answer = None, function(task)
        except (BadbatchError, OSError, MemoryError) as error:
            answer = error, None
        except Exception:  # noqa: BLE001 - it is reported where the result is awaited
            answer = HarnessError(traceback.format_exc()), None
        connection.send(answer)
