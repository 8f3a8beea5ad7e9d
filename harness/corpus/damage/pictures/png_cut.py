"""A PNG that is cut off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import png_chunk
from . import PictureFault

_PLACES = ("idat", "ihdr", "iend")


@fault("png-cut", effect=Effect.ERROR)
@dataclass(frozen=True)
class PngCut(PictureFault):
    """A PNG cut off inside its header, inside its picture data, or before its end."""

    family = "cut"
    kinds = ("imagefolder",)
    needs = "png"
    at: str = "idat"
    """``ihdr``, ``idat``, or ``iend`` (only the last chunk is missing)."""

    def __post_init__(self) -> None:
        if self.at not in _PLACES:
            raise ValueError(f"at must be one of {', '.join(_PLACES)}")

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> PngCut:
        return cls(_PLACES[turn % len(_PLACES)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        part = png_chunk(data, self.at.upper())
        if part is None:
            return data
        return data[: part.start] if self.at == "iend" else data[: (part.start + part.stop) // 2]
