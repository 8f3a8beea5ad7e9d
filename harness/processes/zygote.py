"""The zygote: has torch and the user's module imported, and forks a trial supervisor for each trial.

It communicates with the supervisor over one socket, one JSON object in each line:

- first, to it: ``{"loader", "directory", "isolation", "sources"}``; from it: ``{"ready": {...}}`` or ``{"failed": "one line"}``;
- then, to it: ``{"run": number, "folder": path, …Conditions}``, ``{"stop": number}``, ``{"kill": number}``; from it: ``{"ended":
  number}``.

When the socket closes, the zygote ends every trial and itself: nothing outlives the supervisor.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..errors import LoaderError, UserError
from ..instrumentation.late_imports import when_imported
from ..trial import endings
from ..trial.phases import ends_by_signal
from ..trial.spec import TrialSpec
from .cleanup import Segments, clear_away, standing_segments
from .group import let_loaders_make_groups
from .importing import native_threads, one_thread, own_version, preload, preload_torch, version_of
from .memory import settle, use_huge_pages
from .ports import Ports
from .process_tree import adopt_orphans, descendants, die_with_parent, end_all, ended_children
from .rank import become, enter_directory, redirect
from .rehearsal import rehearse
from .shared_memory import Conditions, can_be_private
from .trial_supervisor import TrialSupervisor, fresh_rank

# Together less than two seconds: after Ctrl-C, users expect that nothing is left by then.
_SUPERVISORS_WITHIN_S = 1.0
_STRAYS_WITHIN_S = 0.5
_WORTH_HUGE_PAGES = 4


class Zygote:
    """The loop that serves the supervisor."""

    def __init__(self, control: socket.socket, scratch: str) -> None:
        self._control = control
        self._input = b""
        self._supervisors: dict[int, tuple[int, Path, Segments]] = {}
        self._ports = Ports()
        self._port_of: dict[int, int] = {}
        self._fork_ranks = True
        self._scratch = scratch
        self._dismissed = False
        self._begun = 0
        self._standing: set[int] = set()

    def serve(self) -> None:
        """Serve until the supervisor closes the socket."""
        hello = self._receive(block=True)
        if not hello:
            return
        try:
            ready = self._get_ready(hello[0])
        except LoaderError as error:
            self._send({"failed": str(error)})
            return
        rehearse()
        settle()
        self._standing = set(descendants())
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        die_with_parent(0)  # from now on the socket shows when the supervisor ends, and the trials can be ended in order
        self._send({"ready": ready})
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)
        while True:
            select.select([self._control.fileno(), wake_read], [], [])
            _drain(wake_read)
            self._reap()
            messages = self._receive(block=False)
            if messages is None:
                break
            for message in messages:
                self._obey(message)
        self._end()

    def _get_ready(self, hello: dict[str, Any]) -> dict[str, Any]:
        enter_directory(hello["directory"])
        isolation = hello["isolation"]
        why = "" if isolation == "fork" else "asked for"
        if isolation == "auto":
            isolation, why = ("fork", "") if sys.platform == "linux" else ("spawn", f"forking is unsafe on {sys.platform}")
        import numpy

        from ..contract.calling import resolve
        from ..contract.libraries import library_versions
        from . import offer  # noqa: F401 - so that no trial has to import it

        when_imported("torch", one_thread)
        when_imported("torch.distributed", let_loaders_make_groups)
        before, before_native = set(threading.enumerate()), native_threads()
        target = resolve(hello["loader"])
        started = [thread.name for thread in threading.enumerate() if thread not in before]
        if started and hello["isolation"] == "auto":
            isolation, why = "spawn", f"importing the module started the thread {started[0]!r}"
        elif hello["isolation"] == "auto" and (native := [name for task, name in native_threads().items() if task not in before_native]):
            isolation, why = "spawn", f"importing the module started a native thread ({native[0]})"
        self._fork_ranks = isolation == "fork"
        from ..contract.source_names import DEFAULT, SOURCES
        from ..sources.base import find, promised

        sources = target.contract("").sources or (DEFAULT,)
        chosen = hello["sources"]
        for source in sources:
            if source in SOURCES and (not chosen or any(fnmatchcase(source, glob) for glob in chosen)):
                preload(hello["loader"], find(source))
        if target.drop_in or "torch" in sys.modules:
            preload_torch()
        return {
            "isolation": isolation,
            "isolation_why": why,
            "can_be_private": can_be_private(),
            "drop_in": target.drop_in,
            "sources": list(sources),
            "contracts": {source: promised(target, source).to_json() for source in SOURCES},
            "versions": {
                "python": ".".join(map(str, sys.version_info[:3])),
                **version_of("torch"),
                "numpy": numpy.__version__,
                **own_version(target.module),
                **library_versions(target.module, hello["directory"]),
            },
        }

    def _obey(self, message: dict[str, Any]) -> None:
        if "bye" in message:
            self._dismissed = True
        if "run" in message:
            self._begun += 1
            if self._begun == _WORTH_HUGE_PAGES:
                use_huge_pages()
            folder = Path(message["folder"])
            self._get_ready_for_ranks(folder)
            standing = standing_segments()
            port = self._ports.take()
            pid = self._fork_supervisor(folder, standing, port, self._conditions(message))
            self._supervisors[pid] = message["run"], folder, standing
            self._port_of[pid] = port
            return
        for word, signum in (("stop", signal.SIGTERM), ("kill", signal.SIGKILL)):
            if word in message:
                for pid, (number, _, _) in self._supervisors.items():
                    if number == message[word]:
                        os.kill(pid, signum)

    def _conditions(self, message: dict[str, Any]) -> Conditions:
        fresh = message["fresh"] or not self._fork_ranks
        return Conditions(fresh, message["private"], message["watched"])

    def _get_ready_for_ranks(self, folder: Path) -> None:
        """Import torch before the first trial with several ranks, which use a group of torch, so that no rank imports it again."""
        if not self._fork_ranks or "torch.distributed" in sys.modules:
            return
        with contextlib.suppress(UserError, ImportError):  # the rank itself reports what is wrong
            if TrialSpec.read(folder / endings.TRIAL).most_ranks > 1:
                preload_torch()
                rehearse()
                settle()

    def _fork_supervisor(self, folder: Path, standing: Segments, port: int, conditions: Conditions) -> int:
        zygote = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for signum in (signal.SIGCHLD, signal.SIGTERM):  # until the trial supervisor sets its own handlers, there is nothing to end
                signal.signal(signum, signal.SIG_DFL)
            die_with_parent(signal.SIGTERM, zygote)
            self._control.close()
            os.environ["MASTER_PORT"] = str(port)
            spec = _with_what_it_reads(folder)
            start = functools.partial(self._start_rank, spec, folder, conditions)
            TrialSupervisor(spec, folder, start, standing, conditions).run()
            code = 0
        except BaseException:
            import traceback

            (folder / "trial_supervisor.txt").write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)

    def _start_rank(self, spec: TrialSpec, folder: Path, conditions: Conditions, rank: int, phases: range) -> int:
        # A process that gets a signal must end like a script, with everything that an interpreter does at its end. So
        # it is not a fork.
        if conditions.fresh or ends_by_signal(spec.phases, phases):
            return fresh_rank(folder, rank, phases)
        supervisor = os.getpid()
        return os.fork() or self._be_rank(spec, folder, rank, phases, supervisor)

    @staticmethod
    def _be_rank(spec: TrialSpec, folder: Path, rank: int, phases: range, supervisor: int) -> NoReturn:
        try:
            os.setsid()
            die_with_parent(signal.SIGKILL, supervisor)
            redirect(folder, rank)
        except BaseException:
            os._exit(1)
        become(spec, rank, folder, phases)

    def _reap(self) -> None:
        for pid, status in ended_children():
            if pid not in self._supervisors:
                continue
            number, folder, standing = self._supervisors.pop(pid)
            self._ports.give_back(self._port_of.pop(pid))
            if status != 0:  # the trial supervisor itself was killed: its descendants are now children of the zygote
                end_all(self._strays, _STRAYS_WITHIN_S)
                clear_away(folder, set(), standing)
            self._send({"ended": number})

    def _strays(self) -> list[int]:
        """Descendants that are neither a trial supervisor nor below one, and did not exist before the first of them."""
        kept = self._standing | set(self._supervisors)
        for pid in self._supervisors:
            kept.update(descendants(pid))
        return [pid for pid in descendants() if pid not in kept]

    def _end(self) -> None:
        deadline = time.monotonic() + _SUPERVISORS_WITHIN_S
        for pid in self._supervisors:
            os.kill(pid, signal.SIGTERM)
        while self._supervisors and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.01)
        end_all(descendants, _STRAYS_WITHIN_S)
        if self._scratch and not self._dismissed:  # the supervisor was killed: the zygote removes what it wrote
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:  # the supervisor has ended; the loop will notice
            return

    def _receive(self, block: bool) -> list[dict[str, Any]] | None:
        """The messages that have arrived; None if the supervisor has closed the socket."""
        while True:
            if not block and not select.select([self._control], [], [], 0)[0]:
                return []
            try:
                data = self._control.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                return None
            self._input += data
            *lines, self._input = self._input.split(b"\n")
            if lines:
                return [json.loads(line) for line in lines]


def _with_what_it_reads(folder: Path) -> TrialSpec:
    """The trial in a folder, after what only this trial may read was made."""
    from ..sources.base import find

    spec = TrialSpec.read(folder / endings.TRIAL)
    lent = find(spec.source).lend(spec, folder)
    if lent is not spec:
        lent.write(folder / endings.TRIAL)
    return lent


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            continue
    except BlockingIOError:
        return


def main() -> None:
    """Serve on a socket: ``DESCRIPTOR PID SCRATCH``, with the supervisor's pid and its folder, or an empty argument for none."""
    descriptor, supervisor, scratch = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

    def give_up(signum: int = 0, frame: FrameType | None = None) -> None:
        """End because the supervisor died while the loader was being imported, or before that."""
        end_all(descendants, _STRAYS_WITHIN_S)
        if scratch:  # the zygote removes what the supervisor wrote
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, give_up)
    adopt_orphans()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor:
        give_up()
    try:
        Zygote(socket.socket(fileno=descriptor), scratch).serve()
    finally:
        end_all(descendants, _STRAYS_WITHIN_S)


if __name__ == "__main__":
    main()
