"""A JPEG in which one marker segment has a wrong length."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_part
from . import PictureFault

_TURNS = (("dht", 7), ("app", -5), ("dqt", 200), ("sof", -3), ("sos", 4), ("app", 3000), ("dht", -9))


@fault("jpeg-lying-length", effect=Effect.ERROR)
@dataclass(frozen=True)
class JpegLyingLength(PictureFault):
    """A JPEG in which one marker segment has a wrong length, so that its reader continues at a wrong place."""

    family = "structure"
    needs = "jpeg"
    segment: str = "dht"
    """``app``, ``dqt``, ``sof``, ``dht`` or ``sos``."""
    by: int = 7
    """What is added to the true length, in bytes."""

    def __post_init__(self) -> None:
        if self.segment not in ("app", "dqt", "sof", "dht", "sos"):
            raise ValueError("segment must be one of app, dqt, sof, dht, sos")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> JpegLyingLength:
        return cls(*_TURNS[turn % len(_TURNS)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        part = jpeg_part(data, self.segment)
        if part is None:
            return data
        length = max(0, min(0xFFFF, part.stop - part.start - 2 + self.by))
        return data[: part.start + 2] + length.to_bytes(2, "big") + data[part.start + 4 :]
