"""The processes below a process, found without reading the whole process table."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

import psutil

_FAST = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")  # Linux with CONFIG_PROC_CHILDREN
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICKS = os.sysconf("SC_CLK_TCK")
_TRACKERS_WITHIN_S = 0.5
_POLL_S = 0.002


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(signum: int, parent: int | None = None) -> None:
    """Ask the kernel to send ``signum`` to this process when its parent dies (Linux only); 0: cancel that.

    Args:
        parent: the parent of this process when it began. If it has already died, this process ends here.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent dies (Linux only)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def ended_children() -> Iterator[tuple[int, int]]:
    """Collect the children of this process that have ended, with their wait statuses. Does not wait."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def end_all(find: Callable[[], list[int]], within_s: float) -> bool:
    """Kill what ``find`` finds until none of it is alive, since a killed process may have just forked.

    Return whether none is left.

    The resource trackers of multiprocessing get a moment to end by themselves. They end when all other processes have
    ended, and remove the semaphores and the shared memory of these.
    """
    began = time.monotonic()
    trackers = {pid for pid in find() if _tracks_resources(pid)}
    zombies: set[int] = set()  # only these can no longer fork: a process that was killed may have forked before
    while True:
        rest = [pid for pid in find() if pid not in zombies]
        seconds = time.monotonic() - began
        for pid in rest:  # at once: a process that forks another and exits, without end, must not have the time to
            if pid not in trackers or seconds >= _TRACKERS_WITHIN_S:
                kill(pid)
        if not rest:
            return True
        if seconds >= within_s:
            return False
        zombies.update(pid for pid in rest if state(pid) == psutil.STATUS_ZOMBIE)
        time.sleep(_POLL_S)


def end_tree(root: int, within_s: float) -> None:
    """Kill a child and all its descendants. It must be a subreaper, and the caller must wait for it."""
    try:
        os.kill(root, signal.SIGSTOP)  # so that it starts nothing new, and stays the parent of orphans
    except ProcessLookupError:
        return
    end_all(lambda: descendants(root), within_s)
    kill(root)


def _tracks_resources(pid: int) -> bool:
    try:
        return any("multiprocessing.resource_tracker" in argument for argument in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def descendants(pid: int | None = None) -> list[int]:
    """The pids of all children, their children and so on; of this process if none is given. Includes zombies."""
    root = os.getpid() if pid is None else pid
    if not _FAST:
        try:
            return [process.pid for process in psutil.Process(root).children(recursive=True)]
        except psutil.Error:
            return []
    found: list[int] = []
    todo = [root]
    while todo:
        children = _children(todo.pop())
        found += children
        todo += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
        except OSError:  # the thread has just ended
            continue
    return found


def kill(pid: int) -> None:
    """Send SIGKILL, if the process still exists and belongs to this user."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # a set-user-id program cannot be killed
        return


def state(pid: int) -> str | None:
    """psutil's word for a process's state; None: there is no such process."""
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return None


def usage(pid: int) -> tuple[float, bool]:
    """Seconds of processor time that a process has used, and whether it runs or waits for a processor; (0, False): it has ended."""
    if not _FAST:
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            return times.user + times.system, process.status() == psutil.STATUS_RUNNING
        except psutil.Error:
            return 0.0, False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # after the name, which may contain any character
    except OSError:
        return 0.0, False
    return (int(fields[11]) + int(fields[12])) / _TICKS, fields[0] == b"R"


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    return state(pid) not in (None, psutil.STATUS_ZOMBIE)


def described(pid: int) -> str:
    """``name (state)`` of a process, without its pid, so that the same leftover always has the same words."""
    try:
        process = psutil.Process(pid)
        return f"{process.name()} ({process.status()})"
    except psutil.Error:
        return "a process that has just ended"
