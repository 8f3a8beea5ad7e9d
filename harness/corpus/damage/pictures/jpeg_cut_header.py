"""A JPEG whose header is cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import jpeg_part
from . import PictureFault

_PLACES = ("app", "dqt", "sof", "dht", "sos", "soi")


@fault("jpeg-cut-header", effect=Effect.ERROR)
@dataclass(frozen=True)
class JpegCutHeader(PictureFault):
    """A JPEG that ends inside its header, as after a copy that stopped early."""

    family = "cut"
    needs = "jpeg"
    at: str = "sos"
    """``soi``: right after the first marker; ``app``, ``dqt``, ``sof``, ``dht``, ``sos``: inside that segment."""

    def __post_init__(self) -> None:
        if self.at not in _PLACES:
            raise ValueError(f"at must be one of {', '.join(_PLACES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> JpegCutHeader:
        return cls(_PLACES[turn % len(_PLACES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        part = None if self.at == "soi" else jpeg_part(data, self.at)
        return data[:2] if part is None else data[: (part.start + part.stop + 2) // 2]
