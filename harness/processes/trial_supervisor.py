"""The trial supervisor of one trial: starts its ranks, enforces its deadline, collects evidence, leaves nothing behind.

It is a separate process, and (on Linux) the subreaper of everything that the trial starts. So a daemon that leaves its
process group and its session is still found and ended.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from ..sources.base import find as find_source
from ..trial import endings, torn
from ..trial.event_log import Actor, Recorder, begin_log
from ..trial.phases import ends_by_signal, lives
from ..trial.spec import TrialSpec
from .cleanup import Segments, clear_away
from .process_tree import adopt_orphans, alive, descendants, described, end_all, ended_children, usage
from .rank import STACK_SIGNAL
from .rereads import Rereads
from .sampling import sample
from .shared_memory import Conditions, Creations, enter_private
from .signalling import Sender
from .temporary_folder import make_temporary_folder
from .waits import Waits

_POLL_S = 0.1
_EVENT_POLL_S = 0.005  # while the log is watched for the point at which a signal is sent
_LOOK_EVERY_S = 0.5
_STACKS_WITHIN_S = 0.6  # for one process
_ALL_STACKS_WITHIN_S = 3.0
_STACKS_POLL_S = 0.03
_ENDLESS_AFTER_S = 1.0  # since the last action of the consumer: a short burst of reads is not a loop
_IDLE_SHARE = 0.1  # of one processor: a trial that uses less, and records nothing, is waiting
_LOG_LIMIT = 4 << 20
_LOG_KEPT = 1 << 16
_GRACE_AFTER_EXIT_S = 1.0  # for helpers that end by themselves after their parent has ended (the resource tracker)
_END_WITHIN_S = 5.0


class TrialSupervisor:
    """Supervises one trial from its own process.

    Args:
        start_rank: starts one rank for some phases and returns its pid; forks here, or runs a fresh interpreter.
        standing: the segments of shared memory that existed before the trial.
        conditions: how the trial is run.
    """

    def __init__(
        self, spec: TrialSpec, folder: Path, start_rank: Callable[[int, range], int], standing: Segments, conditions: Conditions
    ) -> None:
        self._conditions = conditions
        self._spec = spec
        self._folder = folder
        self._start_rank = start_rank
        self._standing = standing
        self._ordered_to_stop = False
        self._endings: dict[int, int] = {}
        self._ranks: dict[int, int] = {}
        self._seen: set[int] = set()
        self._records = [Rereads(folder / f"events-{rank}.bin") for rank in range(spec.most_ranks)]
        self._recorder = Recorder(folder, 0, actor=Actor.SUPERVISOR)
        self._sender: Sender | None = None
        self._why = ""

    def run(self) -> None:
        """Run the trial to its end and write ``ended.json``.

        Raises:
            OSError: the trial's folder cannot be written to.
        """
        try:
            self._run()
        except OSError as error:
            torn.note(self._folder, error)
            raise

    def _run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        adopt_orphans()
        make_temporary_folder(self._folder)
        private = self._conditions.private and enter_private()
        if private:
            self._standing = frozenset()
        creations = Creations() if self._conditions.watched else None
        watched_from = time.monotonic_ns()
        began = time.monotonic()
        cut, cut_at, evidence = None, None, []
        leftovers: list[dict[str, Any]] = []
        for life in lives(self._spec.phases):
            try:
                cut = self._live(life, began)
                cut_at = time.monotonic_ns() if cut else None
                evidence = self._evidence() if cut in endings.HUNG else []
                leftovers += [] if cut else self._orphans()
            finally:
                end_all(self._tree, _END_WITHIN_S)
                self._seen.update(self._ranks)
            if cut or not self._goes_on_after(life):
                break
        self._recorder.close()
        seconds = time.monotonic() - began
        leftovers += clear_away(self._folder, self._seen, self._standing)
        self._trim_logs()
        ended = {
            "cut": cut,
            "seconds": seconds,
            "ranks": [self._endings.get(pid) for pid in self._ranks],
            "leftovers": leftovers,
            "evidence": evidence,
            "cut_at": cut_at,
            "why": self._why,
            "isolation": "spawn" if self._conditions.fresh else "fork",
            "private": private,
            "segments": creations.names() if creations is not None else [],
            "watched": [watched_from, time.monotonic_ns()],
        }
        partial = self._folder / "ended.partial"
        partial.write_text(json.dumps(ended), encoding="utf-8")
        partial.rename(self._folder / endings.ENDED)

    def _live(self, life: range, began: float) -> str | None:
        """Run the phases of one process on each rank; why they were cut short, or None."""
        spec = self._spec.in_phase(life[0])
        self._recorder.enter_phase(life[0])
        self._ranks = {}
        for rank in range(spec.topology.ranks):
            begin_log(self._folder, rank)
            self._ranks[self._start_rank(rank, life)] = rank
        by_signal = ends_by_signal(spec.phases, life)
        self._sender = Sender(spec, life[-1], self._folder, self._ranks) if by_signal else None
        with find_source(spec.source).supply(spec):
            return self._watch(began)

    def _goes_on_after(self, life: range) -> bool:
        """Whether the phases of another process can follow: these ended as they should."""
        return ends_by_signal(self._spec.phases, life) or not any(self._endings[pid] for pid in self._ranks)

    def _stop(self, signum: int, frame: Any) -> None:
        self._ordered_to_stop = True

    def _watch(self, began: float) -> str | None:
        """Wait for all ranks; return the reason for which they must be ended, or None if they ended by themselves."""
        deadline = began + self._spec.deadline_s
        waits = Waits(self._tree, self._folder, began, deadline)
        last_look = last_change = last_sample = time.monotonic()
        work = 0.0
        handles = [os.pidfd_open(pid) for pid in self._ranks] if hasattr(os, "pidfd_open") else []
        try:
            while True:
                self._reap()
                handles = self._running(handles)
                if all(pid in self._endings for pid in self._ranks):
                    return None
                now = time.monotonic()
                if self._sender is not None:
                    self._sender.look(self._recorder)
                if self._ordered_to_stop:
                    return endings.INTERRUPTED
                if now >= deadline:
                    return endings.OUT_OF_TIME
                if now - last_look >= _LOOK_EVERY_S:
                    self._trim_logs()
                    progress, (new_work, runnable) = self._progress(), self._work()
                    if progress or runnable or new_work - work > _IDLE_SHARE * (now - last_look) + 0.05:
                        last_change = now
                    else:
                        self._why = waits.endless()
                    work, last_look = new_work, now
                    if now - last_change >= self._spec.quiet_s or self._why or self._is_endless():
                        return endings.STALLED
                if now - last_sample >= self._spec.sample_every_s:
                    sample(self._recorder, self._tree())
                    last_sample = now
                poll_s = self._poll_s
                if handles:
                    select.select(handles, [], [], poll_s)
                else:
                    time.sleep(poll_s / 5)
        finally:
            for handle in handles:
                os.close(handle)

    @property
    def _poll_s(self) -> float:
        waits_for_event = self._sender is not None and not self._sender.sent
        return min(_POLL_S, self._spec.sample_every_s, _EVENT_POLL_S if waits_for_event else _POLL_S)

    def _running(self, handles: list[int]) -> list[int]:
        readable, _, _ = select.select(handles, [], [], 0) if handles else ([], [], [])
        for handle in readable:
            os.close(handle)
        return [handle for handle in handles if handle not in readable]

    def _reap(self) -> None:
        """Collect every child that has ended by itself, the trial's ranks as well as adopted orphans."""
        for pid, status in ended_children():
            if pid in self._ranks:
                self._endings[pid] = os.waitstatus_to_exitcode(status)

    def _tree(self) -> list[int]:
        found = descendants()
        self._seen.update(found)
        return found

    def _progress(self) -> bool:
        """Whether anything new was recorded."""
        looked = [record.look() for record in self._records]
        return any(looked)

    def _is_endless(self) -> bool:
        """Whether the record proves that the trial will not end."""
        least = _ENDLESS_AFTER_S + 2 * self._spec.timeout_s  # a loader may try again until its timeout is over
        for record in self._records:
            if time.monotonic_ns() - record.since_ns >= least * 1e9 and (why := record.endless()):
                self._why = why
                return True
        return False

    def _work(self) -> tuple[float, bool]:
        """Seconds of processor time of all processes, and whether one of them waits for a processor."""
        total, runnable = 0.0, False
        for pid in self._tree():
            seconds, runs = usage(pid)
            total += seconds
            runnable |= runs
        return total, runnable

    def _evidence(self) -> list[dict[str, Any]]:
        """What every process of the trial is doing: its state, what it waits for in the kernel, its Python stacks."""
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + _ALL_STACKS_WITHIN_S
        for pid in self._tree():
            try:
                process = psutil.Process(pid)
                entry: dict[str, Any] = {"pid": process.pid, "ppid": process.ppid(), "state": process.status()}
                entry["name"] = process.name()
                if process.status() == psutil.STATUS_ZOMBIE:
                    found.append(entry)
                    continue
            except psutil.Error:
                continue
            entry["waits_in"] = _read_proc(process.pid, "wchan")
            if _catches(process.pid, STACK_SIGNAL):
                before = self._stacks_size()
                try:
                    os.kill(process.pid, STACK_SIGNAL)
                except OSError:
                    continue
                self._wait_for_stacks(before, min(deadline, time.monotonic() + _STACKS_WITHIN_S))
            found.append(entry)
        return found

    def _stacks_size(self) -> int:
        return sum(path.stat().st_size for path in self._folder.glob("stacks-*.txt"))

    def _wait_for_stacks(self, before: int, deadline: float) -> None:
        """Wait until one process's dump is written and no longer grows.

        A stopped process never answers, so there is a limit.

        One process after the other: all write to one file, and nothing shows where a dump ends.
        """
        last = before
        while time.monotonic() < deadline:
            time.sleep(_STACKS_POLL_S)
            now = self._stacks_size()
            if now == last and now > before:
                return
            last = now

    def _orphans(self) -> list[dict[str, str]]:
        """Processes that are still alive after every rank has ended."""
        deadline = time.monotonic() + _GRACE_AFTER_EXIT_S
        while True:
            self._reap()
            rest = [pid for pid in self._tree() if alive(pid)]
            if not rest:
                return []
            if self._ordered_to_stop or time.monotonic() >= deadline:
                return [{"what": "process", "name": described(pid)} for pid in rest]
            time.sleep(_POLL_S / 5)

    def _trim_logs(self) -> None:
        """Keep only the end of what a loader prints, since it may print without end.

        Writers use append mode, so truncating is safe.
        """
        for path in self._folder.glob("output-*.txt"):
            if path.stat().st_size > _LOG_LIMIT:
                with path.open("rb") as file:
                    file.seek(-_LOG_KEPT, os.SEEK_END)
                    tail = file.read(_LOG_KEPT)
                os.truncate(path, 0)
                with path.open("ab") as file:
                    file.write(tail)


def _read_proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _catches(pid: int, signum: int) -> bool:
    """Whether a process has a handler for a signal, so that sending it does not kill."""
    match = re.search(r"^SigCgt:\s*([0-9a-f]+)", _read_proc(pid, "status"), re.MULTILINE)
    return bool(match and int(match.group(1), 16) >> (signum - 1) & 1)


def fresh_rank(folder: Path, rank: int, phases: range) -> int:
    """Start one rank for some phases in a fresh interpreter; return its pid."""
    output = os.open(folder / f"output-{rank}.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "badbatch.harness.processes.rank", str(folder), str(rank), str(os.getpid()), str(phases[0])],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    finally:
        os.close(output)
    _STARTED.append(process)  # otherwise its destructor would warn that it was not waited for
    return process.pid


_STARTED: list[subprocess.Popen[bytes]] = []
