"""Starts, signals and waits for trials: the one boundary between judging and the processes.

>>> with Supervisor("torch.utils.data:DataLoader", directory=".") as supervisor:   # doctest: +SKIP
...     history = supervisor.run(spec, folder)
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..contract.choices import Isolation
from ..contract.job import Contract
from ..errors import HarnessError, LoaderError
from ..trial import endings
from ..trial.history import History
from ..trial.spec import TrialSpec
from .process_tree import end_tree
from .shared_memory import Conditions
from .temporary_folder import remove_temporary_folder

_READY_WITHIN_S = 120.0  # importing torch from a cold disk, under load
_PATIENCE_S = 8.0  # after a trial's deadline, until its trial supervisor is asked to stop; the same time again until it is killed
_END_WITHIN_S = 1.6  # then the zygote is no longer waited for: Ctrl-C must take effect within two seconds
_KILL_WITHIN_S = 5.0
_LAST_WORDS_WITHIN_S = 5.0
_USUAL = Conditions()
_ORDERS = ("stop", "kill")  # to a trial that does not end


class Supervisor:
    """Keeps one loader imported and runs trials of it, several at once.

    Args:
        loader: ``pkg.module:attr``.
        directory: the folder that is importable, in addition to what is installed.
        isolation: ``fork`` (about 30 ms for a trial), ``spawn`` (a fresh interpreter for each), or ``auto``.
        sources: globs of the sources whose libraries are imported beforehand; none: all that the loader declares.
        scratch: a folder that is removed even if this process is killed and cannot remove it itself.

    Raises:
        LoaderError: the loader cannot be imported, or is not a loader.
        HarnessError: the zygote could not be started.
    """

    def __init__(
        self,
        loader: str,
        directory: str | Path = ".",
        isolation: Isolation = "auto",
        *,
        sources: Sequence[str] = (),
        scratch: Path | None = None,
    ) -> None:
        self.loader = loader
        self.directory = os.path.abspath(directory)
        self._running: dict[int, tuple[Path, float, int]] = {}
        self._count = 0
        self._input = b""
        self._ready: dict[str, Any] = {}
        if not os.path.isdir(self.directory):
            raise LoaderError(f"there is no folder {self.directory} from which {loader} could be imported")
        self._control, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the supervisor
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "badbatch.harness.processes.zygote"),
                        *(str(theirs.fileno()), str(os.getpid()), "" if scratch is None else str(scratch)),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                    cwd="/",
                    env=_environment(),
                )
            self._send({"loader": loader, "directory": self.directory, "isolation": isolation, "sources": list(sources)})
            self._ready = self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def isolation(self) -> str:
        """``fork`` or ``spawn``: what is really used."""
        return str(self._ready["isolation"])

    @property
    def isolation_why(self) -> str:
        """Why it is not ``fork``; empty if it is."""
        return str(self._ready["isolation_why"])

    @property
    def can_be_private(self) -> bool:
        """Whether a trial can have a ``/dev/shm`` of its own."""
        return bool(self._ready["can_be_private"])

    @property
    def drop_in(self) -> bool:
        """Whether the loader is called as ``cls(dataset, …)``."""
        return bool(self._ready["drop_in"])

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the loader declares; a drop-in class gets ``map`` and ``sharded_stream``."""
        return tuple(self._ready["sources"])

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python, torch, numpy, and of the libraries that the loader's module imports."""
        return dict(self._ready["versions"])

    def contract(self, source: str) -> Contract:
        """What is declared for a source."""
        return Contract.from_json(self._ready["contracts"][source])

    @property
    def running(self) -> int:
        """The number of running trials."""
        return len(self._running)

    def folders(self) -> dict[int, Path]:
        """The running trials, by number, with their folders."""
        return {number: folder for number, (folder, _, _) in self._running.items()}

    def start(self, spec: TrialSpec, folder: Path, conditions: Conditions = _USUAL) -> int:
        """Start a trial in its own folder; returns the number by which :meth:`finished` names it.

        Raises:
            HarnessError: the zygote has died; the trial was not started.
        """
        folder = folder.absolute()  # the trial runs elsewhere, and may change its directory
        folder.mkdir(parents=True, exist_ok=True)
        self._count += 1
        spec.write(folder / endings.TRIAL)
        self._running[self._count] = (folder, time.monotonic() + spec.deadline_s + _PATIENCE_S, 0)
        try:
            self._send({"run": self._count, "folder": str(folder), **dataclasses.asdict(conditions)})
        except HarnessError:  # it was not started
            del self._running[self._count]
            raise
        return self._count

    def finished(self, timeout_s: float) -> Iterator[tuple[int, Path]]:
        """The trials that have ended, with their folders; waits up to ``timeout_s`` for the first of them.

        Raises:
            HarnessError: the zygote died or does not answer; its trials are lost with it.
        """
        for message in self._receive(timeout_s):
            number = message["ended"]
            if number in self._running:
                folder, _, _ = self._running.pop(number)
                yield number, folder
        now = time.monotonic()
        for number, (folder, patience, told) in list(self._running.items()):
            if now <= patience:
                continue
            if told == len(_ORDERS):
                raise HarnessError("the zygote does not answer")
            self._send({_ORDERS[told]: number})
            self._running[number] = (folder, now + _PATIENCE_S, told + 1)

    def stop(self, number: int) -> None:
        """End a trial early; :meth:`finished` names it when that is done.

        Raises:
            HarnessError: the zygote has died.
        """
        self._send({"stop": number})

    def run(self, spec: TrialSpec, folder: Path) -> History:
        """Run one trial and wait for it."""
        number = self.start(spec, folder)
        while True:
            for ended, where in self.finished(1.0):
                if ended == number:
                    return History.load(where)

    def close(self, keep_scratch: bool = False) -> None:
        """End every trial and the zygote; within two seconds all their processes have ended.

        Args:
            keep_scratch: another supervisor continues in the same folder. Otherwise the zygote removes it, also if this
                process is killed before it can do so itself.
        """
        if keep_scratch:
            with contextlib.suppress(OSError):  # it may have ended already
                self._control.sendall(b'{"bye": true}\n')
        self._control.close()
        if self._process is not None:
            try:
                self._process.wait(_END_WITHIN_S if self._ready else 0)
            except subprocess.TimeoutExpired:
                end_tree(self._process.pid, _KILL_WITHIN_S)
            finally:
                # Processes started by the import of a module that then failed, unless they left the session.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._log.close()
        for folder, *_ in self._running.values():  # their trial supervisors may have been killed
            remove_temporary_folder(folder)
        self._running.clear()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < deadline:
            try:
                messages = self._receive(0.5)
            except HarnessError as error:
                raise LoaderError(f"importing {self.loader} ended the process that did it: {error}") from error
            for message in messages:
                if "failed" in message:
                    raise LoaderError(message["failed"])
                return dict(message["ready"])
        raise LoaderError(f"importing {self.loader} did not end within {_READY_WITHIN_S:.0f} s")

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise HarnessError(f"the zygote has died: {self._last_words()}") from error

    def _receive(self, timeout_s: float) -> list[dict[str, Any]]:
        poll = select.poll()  # unlike select(), it accepts descriptors beyond 1023, and the user's process may have many
        poll.register(self._control, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            return []
        data = b""
        with contextlib.suppress(ConnectionError):
            data = self._control.recv(1 << 16)
        if not data:
            raise HarnessError(f"the zygote has died: {self._last_words()}")
        self._input += data
        *lines, self._input = self._input.split(b"\n")
        return [json.loads(line) for line in lines]

    def _last_words(self) -> str:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_WORDS_WITHIN_S)
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        code = self._process.returncode
        how = f"exit code {code}" if code is None or code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
        return f"{how}{': ' + lines[-1] if lines else ''}"


def _environment() -> dict[str, str]:
    """The zygote's environment: one thread for each process, as torchrun sets it, unless the user sets otherwise."""
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    if path := environment.get("PYTHONPATH"):  # it starts in another folder, where relative entries would be wrong
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in path.split(os.pathsep) if entry)
    return environment
