"""A PNG with a wrong checksum."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import png_chunk
from . import PictureFault

_CHUNKS = ("IDAT", "IHDR", "IEND")


@fault("png-wrong-crc", effect=Effect.ERROR)
@dataclass(frozen=True)
class PngWrongCrc(PictureFault):
    """A PNG in which one chunk's checksum is wrong; its content is correct."""

    family = "bits"
    kinds = ("imagefolder",)
    needs = "png"
    chunk: str = "IDAT"
    """``IHDR``, ``IDAT`` or ``IEND``."""

    @classmethod
    def turn(cls, turn: int, draw: random.Random) -> PngWrongCrc:
        return cls(_CHUNKS[turn % len(_CHUNKS)])

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        part = png_chunk(data, self.chunk)
        if part is None:
            return data
        return (
            data[: part.stop - 4] + bytes(byte ^ 0x5A for byte in data[part.stop - 4 : part.stop]) + data[part.stop :]
        )
