"""Records, through CPython's audit events (PEP 578), which stored samples a process opens, and when.

C libraries that open files themselves raise no such event, so a file may have been opened without a record.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..trial.event_log import Recorder


class Opens:
    """An audit hook that records what the opening of a stored sample shows.

    That is: the sample's read begins, and the previous read on this thread is over; and its fault takes effect, unless
    it acts in the decoder. If a file contains several samples nothing is recorded: nobody can see which one is read
    when.
    """

    def __init__(self, folder: str, rank: int, root: str) -> None:
        self._folder = folder
        self._rank = rank
        self._prefix = _plain(root).rstrip(os.sep) + os.sep
        self._recorder: Recorder | None = None
        self._samples: dict[str, int] | None = None
        self._struck: frozenset[int] = frozenset()
        self._here = threading.local()

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open":
            return
        path = args[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or args[2] & os.O_ACCMODE != os.O_RDONLY:
            return
        try:
            path = _plain(path)  # first: both a/../root/file and root/../file would pass a check of the prefix
        except OSError:  # a relative path, and the current folder has been removed
            return
        if path.startswith(self._prefix) and not getattr(self._here, "busy", False):
            self._here.busy = True  # files opened for the record are not reads of the loader
            try:
                self._opened(path[len(self._prefix) :].replace(os.sep, "/"))
            except Exception:  # noqa: BLE001 - an error here would look like the loader's own
                return
            finally:
                self._here.busy = False

    def _opened(self, path: str) -> None:
        from ..trial.event_log import Kind

        sample = self._known.get(path)
        if sample is None:
            return
        before = getattr(self._here, "sample", None)
        if before is not None and self._here.pid == os.getpid():
            self._record(Kind.READ_DONE, before)
        self._here.sample, self._here.pid = sample, os.getpid()
        self._record(Kind.READ, sample, threading.get_native_id(), int(threading.current_thread() is not threading.main_thread()))
        if sample in self._struck:
            self._record(Kind.FAULT, sample)

    @property
    def _record(self) -> Recorder:
        if self._recorder is None:
            from ..trial.event_log import Recorder

            self._recorder = Recorder(self._folder, self._rank)
        return self._recorder

    @property
    def _known(self) -> dict[str, int]:
        """The sample that is the file at a path."""
        if self._samples is None:
            from ..corpus.damage.decoders import DecoderFault
            from ..corpus.stored import Stored
            from ..trial import endings
            from ..trial.spec import TrialSpec

            spec = TrialSpec.read(Path(self._folder) / endings.TRIAL)
            files = (spec.stored or Stored("")).files
            alone = all(count == 1 for _, _, count in files)
            self._struck = frozenset(sample for sample, fault in spec.plan.items() if not isinstance(fault, DecoderFault))
            self._samples = {path: first for path, first, _ in files} if alone else {}
        return self._samples


def _plain(path: str) -> str:
    """The absolute path without ``..``, ``.`` and doubled separators."""
    path = os.path.abspath(path)
    return path[1:] if path.startswith("//") else path  # POSIX lets two leading slashes mean something else; Linux does not
