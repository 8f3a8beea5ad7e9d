"""A JPEG with one marker segment twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_part
from . import PictureFault

_SEGMENTS = ("sof", "dqt", "dht", "app", "sos")


@fault("jpeg-repeated-segment", effect=Effect.ERROR)
@dataclass(frozen=True)
class JpegRepeatedSegment(PictureFault):
    """A JPEG that contains one marker segment twice; whether that matters depends on the segment."""

    family = "structure"
    needs = "jpeg"
    segment: str = "sof"
    """``app``, ``dqt``, ``sof``, ``dht`` or ``sos``."""

    def __post_init__(self) -> None:
        if self.segment not in _SEGMENTS:
            raise ValueError(f"segment must be one of {', '.join(_SEGMENTS)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> JpegRepeatedSegment:
        return cls(_SEGMENTS[turn % len(_SEGMENTS)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        part = jpeg_part(data, self.segment)
        return data if part is None else data[: part.stop] + data[part.start :]
