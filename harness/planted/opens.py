"""Sees, through CPython's audit events (PEP 578), which stored samples a process opens, and when.

Opens by C libraries of their own raise no such event, so what is not seen may have happened all the same.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..recorder import Recorder


class Opens:
    """An audit hook that records what the opening of a file of the corpus tells.

    - where each file is a sample, that a read of the sample begins, and that the one before it on this thread is over;
    - that the faults of the samples in it take hold, except those that strike in the decoder.
    """

    def __init__(self, folder: str, rank: int, root: str) -> None:
        self._folder = folder
        self._rank = rank
        self._prefix = root.rstrip(os.sep) + os.sep
        self._recorder: Recorder | None = None
        self._files: dict[str, tuple[int, tuple[int, ...]]] | None = None
        self._here = threading.local()

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open":
            return
        path = args[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or args[2] & os.O_ACCMODE != os.O_RDONLY:
            return
        if not os.path.isabs(path):
            path = os.path.join(os.getcwd(), path)
        if path.startswith(self._prefix) and not getattr(self._here, "busy", False):
            self._here.busy = True  # what is opened in order to record is no read of the loader's
            try:
                self._opened(os.path.normpath(path)[len(self._prefix) :].replace(os.sep, "/"))
            except Exception:  # noqa: BLE001 - an error here would be taken for the loader's own
                return
            finally:
                self._here.busy = False

    def _opened(self, path: str) -> None:
        from ..recorder import Kind

        sample, struck = self._known.get(path, (-1, ()))
        if sample >= 0:
            before = getattr(self._here, "sample", -1)
            if before >= 0 and getattr(self._here, "pid", 0) == os.getpid():
                self._record(Kind.READ_DONE, before)
            self._here.sample, self._here.pid = sample, os.getpid()
            self._record(Kind.READ, sample)
        for one in struck:
            self._record(Kind.FAULT, one)

    @property
    def _record(self) -> Recorder:
        if self._recorder is None:
            from ..recorder import Recorder

            self._recorder = Recorder(self._folder, self._rank)
        return self._recorder

    @property
    def _known(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        """From the path of a file to its sample (-1: it has several) and the samples in it whose fault takes hold."""
        if self._files is None:
            from ..corpus.damage.decoders import DecoderFault
            from ..spec import TrialSpec

            spec = TrialSpec.read(Path(self._folder) / "trial.json")
            files = spec.stored.files if spec.stored is not None else ()
            struck = [sample for sample, fault in spec.plan.items() if not isinstance(fault, DecoderFault)]
            alone = spec.source == "imagefolder"
            self._files = {
                path: (first if alone else -1, tuple(s for s in struck if first <= s < first + count))
                for path, first, count in files
            }
        return self._files
