"""A progressive JPEG that is cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_part, jpeg_scan
from . import PictureFault

_HEADER = ("app", "dqt", "sof", "dht", "sos")
_PLACES = ("0.5", "sof", "0.1", "dqt", "0.9", "sos", "0.99", "dht", "app", "soi", "end")


@fault("progressive-cut", effect=Effect.ERROR)
@dataclass(frozen=True)
class ProgressiveCut(PictureFault):
    """A progressive JPEG that is cut off. Its first scans are left: a coarse picture that looks like a whole one."""

    family = "cut"
    kinds = ("imagefolder",)
    needs = "progressive"
    at: str = "0.5"
    """``soi``, a header segment (``app``, ``dqt``, ``sof``, ``dht``, ``sos``), ``end`` (only the last marker is
    missing), or the share of the scans that is left, as ``0.5``."""

    def __post_init__(self) -> None:
        if self.at not in ("soi", "end", *_HEADER):
            float(self.at)

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> ProgressiveCut:
        return cls(_PLACES[turn % len(_PLACES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        if self.at == "soi":
            return data[:2]
        if self.at in _HEADER:
            part = jpeg_part(data, self.at)
            return data[:2] if part is None else data[: (part.start + part.stop + 2) // 2]
        start, stop = jpeg_scan(data)
        return data[:stop] if self.at == "end" else data[: start + int((stop - start) * float(self.at))]
