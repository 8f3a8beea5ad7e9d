"""badbatch's own picture format, whose decoder dies, hangs or takes all memory: as a Pillow plug-in, and as a function.

Its files are those of :mod:`badbatch.harness.corpus.marked`.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.marked import MAGIC, effect_of, picture_in
from ..faults.abort import Abort
from ..faults.base import Fault, Read
from ..faults.hang_holding_lock import HangHoldingLock
from ..faults.segfault import Segfault
from .membership import membership

if TYPE_CHECKING:
    from PIL import Image

    from ..trial.event_log import Recorder

_ROOM = 256 << 20  # bytes that a decoder may allocate: more than pictures need, and harmless to other processes
_PIECE = 8 << 20
_limited = threading.Lock()


def _take_all_memory() -> None:
    """Allocate and touch memory until there is no more.

    The process has its own limit, so the machine does not run out of memory.

    Raises:
        MemoryError: always, from the allocation that failed.
    """
    import resource

    with _limited:  # if two decodings run at once, the second must not read the first one's limit as the process's own
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        taken: list[bytes] = []
        try:
            limit = _address_space() + _ROOM
            resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
            while len(taken) * _PIECE < 4 * _ROOM:  # if the platform does not enforce its limit
                taken.append(b"\xff" * _PIECE)
            raise MemoryError
        finally:
            taken.clear()
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    import psutil

    return int(psutil.Process().memory_info().vms)


def _strikes(fault: Fault) -> Callable[[], None]:
    def strike() -> None:
        fault.strike(Read(sample=-1, value=lambda: None, took_hold=lambda: None, attempt=lambda: 0))

    return strike


EFFECTS: dict[str, Callable[[], None]] = {
    "segfault": _strikes(Segfault()),
    "abort": _strikes(Abort()),
    "hang": _strikes(HangHoldingLock()),
    "memory": _take_all_memory,
}
"""From the name in a marked file to the function that produces the effect; none of them returns."""


def strike(data: bytes) -> None:
    """Produce the effect of a marked file on its decoder, after recording it. Returns for any other file."""
    effect = effect_of(data)
    if effect is None:
        return
    _record_fault(data)
    EFFECTS.get(effect, _unknown)()


def _unknown() -> None:
    raise OSError("a marked picture of a later version")


def _record_fault(data: bytes) -> None:
    trial = membership()
    if trial is None:  # the corpus is read outside a trial
        return
    from ..corpus.manifest import read_samples
    from ..trial.event_log import Kind, Recorder

    digest = hashlib.sha256(data).hexdigest()
    sample = next((record.id for record in read_samples(trial["root"]) if record.sha256 == digest), None)
    if sample is None:  # a member of a shard: the picture itself contains its id
        sample = _sample_marked_in(data)
    recorder: Recorder = Recorder(Path(trial["folder"]), trial["rank"])
    recorder(Kind.FAULT, sample)
    recorder.close()


def _sample_marked_in(data: bytes) -> int:
    from PIL import Image

    from ..identity.marks import read_mark

    with Image.open(io.BytesIO(picture_in(data))) as picture:
        found = read_mark(picture).id
    return -1 if found is None else found


def register() -> None:
    """Register the format with Pillow in this process: opening a marked file is harmless, decoding it is not."""
    from PIL import Image, ImageFile

    class MarkedImageFile(ImageFile.ImageFile):
        format = "BADBATCH"
        format_description = "badbatch marked picture"

        def _open(self) -> None:
            assert self.fp is not None  # Pillow opens it before it calls the plug-in
            data = self.fp.read()
            with Image.open(io.BytesIO(picture_in(data))) as inner:
                self._size, self._mode = inner.size, inner.mode
            self._data = data
            self.tile = []

        def load(self) -> Any:
            strike(self._data)
            return super().load()

    Image.register_open(MarkedImageFile.format, MarkedImageFile, lambda head: head.startswith(MAGIC))


class Decode:
    """The job's ``decode``: from the bytes of a file to a PIL picture. Picklable.

    Args:
        lazy: open the picture, and decode it only when its pixels are needed.
    """

    def __init__(self, lazy: bool = False) -> None:
        self.lazy = lazy

    def __call__(self, data: bytes) -> Image.Image:
        """Decode the bytes; a marked file produces its effect in this process.

        Raises:
            ModuleNotFoundError: Pillow is not installed.
            Exception: anything that Pillow raises for a damaged file.
        """
        from PIL import Image

        strike(data)
        picture = Image.open(io.BytesIO(data))
        if not self.lazy:
            picture.load()
        return picture
