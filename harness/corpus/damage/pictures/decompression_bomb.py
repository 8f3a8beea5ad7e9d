"""A header that claims an enormous picture."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...jpegparts import PNG_SIGNATURE, jpeg_part, png_chunk, png_crc
from . import PictureFault


@fault("decompression-bomb", effect=Effect.ERROR)
@dataclass(frozen=True)
class DecompressionBomb(PictureFault):
    """The header claims 60,000 × 60,000 pixels: a decoder that trusts it allocates 10 GB."""

    family = "header"
    pixels: int = 60_000
    """The claimed width and height; at most 65,500 in a JPEG."""

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        if data.startswith(PNG_SIGNATURE):
            chunk = png_chunk(data, "IHDR")
            assert chunk is not None
            body = b"IHDR" + 2 * self.pixels.to_bytes(4, "big") + data[chunk.start + 16 : chunk.stop - 4]
            return data[: chunk.start + 4] + body + png_crc(body) + data[chunk.stop :]
        part = jpeg_part(data, "sof")
        if part is None:
            return data
        return data[: part.start + 5] + 2 * min(self.pixels, 65_500).to_bytes(2, "big") + data[part.start + 9 :]
