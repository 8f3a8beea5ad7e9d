"""Makes the pictures of one corpus in one process: backgrounds are painted once, ids are drawn into copies."""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identity.marks import SMALLEST, draw_mark
from .draws import draw, number
from .paint import Pixels, paint
from .pngfile import png_bytes
from .stamp import Stamp, can_stamp, encode_jpeg
from .words import Vocabulary, vocabulary

if TYPE_CHECKING:
    from PIL import Image

_STRETCH = 256
"""Neighbouring samples that share their backgrounds. One process makes them together, so it paints few backgrounds."""
_SHARED = 2
_SAMPLES_A_BACKGROUND = 32
_BACKGROUNDS = (8, 64)  # minimum and maximum in one corpus of any size: memory stays constant
_KEPT_BYTES = 32 << 20  # of decoded backgrounds


@dataclass(frozen=True)
class _Background:
    jpeg: bytes
    """The picture at its own quality, with an arbitrary mark in it."""
    quality: int
    stamp: Stamp | None


class Canvas:
    """One sample's undamaged picture, which can be stored in any format."""

    def __init__(self, studio: Studio, sample: int) -> None:
        self._studio, self._sample = studio, sample
        self.words = studio.words

    @property
    def plain(self) -> bytes:
        """Its ordinary JPEG, already encoded."""
        return self._studio.jpeg(self._sample)

    @functools.cached_property
    def pixels(self) -> Pixels:
        """``(height, width, 3)``, with a mark if it is large enough."""
        return self._studio.pixels(self._sample)

    @functools.cached_property
    def quality(self) -> int:
        """The quality of its JPEG, 1-100."""
        return self._studio.quality(self._sample)

    @property
    def picture(self) -> Image.Image:
        """The same as a new PIL picture."""
        from PIL import Image

        return Image.fromarray(self.pixels)

    def jpeg(self, **options: Any) -> bytes:
        """A JPEG of it, with further options for Pillow."""
        return saved(self.picture, "JPEG", quality=self.quality, **options)

    def png(self) -> bytes:
        """A PNG of it."""
        return png_bytes(self.pixels)


def saved(picture: Image.Image, format: str, **options: Any) -> bytes:
    """The bytes of a PIL picture in one of Pillow's formats."""
    out = io.BytesIO()
    picture.save(out, format, **options)
    return out.getvalue()


class Studio:
    """Makes any sample's undamaged picture, the same in every process.

    Args:
        seed: of the corpus.
        size: width and height.
        samples: in the whole corpus; the number of backgrounds depends on it.
    """

    def __init__(self, seed: int, size: tuple[int, int], samples: int) -> None:
        self.seed, self.size = seed, size
        least, most = _BACKGROUNDS
        stretches = -(-samples // _STRETCH) or 1
        wanted = min(max(samples // _SAMPLES_A_BACKGROUND, least), most)
        self._shared = max(_SHARED, -(-wanted // stretches))
        self._backgrounds = min(stretches * self._shared, most)
        self._background = functools.lru_cache(most)(self._paint)
        kept = max(1, min(most, _KEPT_BYTES // (3 * size[0] * size[1])))
        self._decoded = functools.lru_cache(kept)(self._decode)

    @property
    def words(self) -> Vocabulary:
        return vocabulary(self.seed)

    @property
    def marked(self) -> bool:
        """Whether pictures of this size are large enough for an id mark."""
        return min(self.size) >= SMALLEST

    def jpeg(self, sample: int) -> bytes:
        """The sample as an ordinary baseline JPEG."""
        background = self._background(self._number(sample))
        if background.stamp is not None:
            return background.stamp.with_id(sample)
        return encode_jpeg(self.pixels(sample), background.quality)

    def canvas(self, sample: int) -> Canvas:
        """The sample's picture, for other formats."""
        return Canvas(self, sample)

    def quality(self, sample: int) -> int:
        """The quality of the sample's JPEG, 1-100."""
        return self._background(self._number(sample)).quality

    def pixels(self, sample: int) -> Pixels:
        """The sample's own pixels, ``(height, width, 3)`` uint8, with a mark if they are large enough."""
        pixels = self._decoded(self._number(sample)).copy()
        if self.marked:
            draw_mark(pixels, sample)
        return pixels

    def _number(self, sample: int) -> int:
        of_stretch = number(self.seed, sample, "background") % self._shared
        return (sample // _STRETCH * self._shared + of_stretch) % self._backgrounds

    def _paint(self, background: int) -> _Background:
        source = draw(self.seed, background, "paint")
        pixels = paint(source, self.size, self.words)
        quality = source.randint(70, 92)
        stamp = Stamp(pixels, quality) if can_stamp(self.size) else None
        return _Background(stamp.template if stamp else encode_jpeg(pixels, quality), quality, stamp)

    def _decode(self, background: int) -> Pixels:
        from PIL import Image

        return np.array(Image.open(io.BytesIO(self._background(background).jpeg)))


@functools.lru_cache(2)
def studio(seed: int, size: tuple[int, int], samples: int) -> Studio:
    """The process's studio for such a corpus."""
    return Studio(seed, size, samples)


def picture_bytes(seed: int, sample: int, size: tuple[int, int], samples: int) -> bytes:
    """The plain JPEG of one sample, for kinds that store pictures inside something else (a shard, a column)."""
    return studio(seed, size, samples).jpeg(sample)
