"""Pictures in a batch: which values are pictures, which sample each belongs to, and whether it is whole."""

from __future__ import annotations

import functools
import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..corpus import content
from ..corpus.base import SampleRecord
from ..identity.likeness import is_flat, is_like
from ..identity.marks import MarkReading, read_mark
from .stored_pictures import StoredPictures

FIELDS = ("jpg", "jpeg", "png", "webp", "image", "img", "picture", "pixel_values")
"""Names of fields that contain pictures."""
_LEAST_SIDE = 32  # minimum size of a value that looks like a picture
_LEAST_NAMED_SIDE = 5  # minimum size of a picture in a field for pictures: more than the number of channels


class PictureJudge:
    """Finds the sample of a picture: by its id mark, or, if no mark can be read, by comparison with the stored picture.

    Args:
        root: the corpus.
        legal: the samples that are legally odd.
    """

    def __init__(self, root: str, records: Sequence[SampleRecord], legal: Collection[int]) -> None:
        self._stored = StoredPictures(root, records)
        self._markless = [record.id for record in records if record.identity == "path" and record.id in legal]

    @property
    def some_bear_no_mark(self) -> bool:
        """Whether there are legal oddities without a mark, so that a nameless picture may be one of them."""
        return bool(self._markless)

    def owner(self, picture: Any, named: int | None) -> tuple[int | None, bool]:
        """Which sample a picture belongs to, and whether it is whole.

        Args:
            named: the sample that the path, key or id of the picture names; None: nothing does.

        Returns:
            The sample's id, or ``content.UNREADABLE``, or None for one of several legal oddities without a mark.
        """
        reading = _reading(picture)
        if reading is None:  # what cannot be decoded is not a good picture
            return content.UNREADABLE, False
        if reading.id is not None:
            return reading.id, reading.whole
        if reading.top is not None or reading.bottom is not None:  # parts of two samples
            return content.UNREADABLE, True
        if named is not None and named >= 0:
            original = self._stored.good(named)
            return (named if original is not None and is_like(picture, original) else content.UNREADABLE), True
        like = [sample for sample, original in self._originals if is_like(picture, original)]
        if not like:
            return content.UNREADABLE, True
        return (None if len(like) > 1 or is_flat(picture) else like[0]), True

    @functools.cached_property
    def _originals(self) -> list[tuple[int, Any]]:
        """The legal oddities without a mark, with their pictures."""
        return [(sample, picture) for sample in self._markless if (picture := self._stored.good(sample)) is not None]


def picture_in(name: str, value: Any) -> Any:
    """The picture in a field; bytes of a file are opened, like HF's ``{"bytes", "path"}``; None: there is none.

    Bytes in a field for pictures that cannot be opened are returned unchanged.
    """
    if name not in FIELDS:
        return value if is_picture(value) else None
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, (bytes, bytearray)):
        from PIL import Image

        try:
            return Image.open(io.BytesIO(value))
        except Exception:  # noqa: BLE001 - any error of a decoder: it is not a picture
            return value
    return value if is_picture(value, _LEAST_NAMED_SIDE) else None


def is_picture(value: Any, least_side: int = _LEAST_SIDE) -> bool:
    """Whether one value can be one picture: of PIL, or an array of two or three axes of some length."""
    if value is None or isinstance(value, (str, bytes, Mapping, list, tuple)):
        return False
    if hasattr(value, "convert") and hasattr(value, "size") and hasattr(value, "mode"):
        return True
    shape = getattr(value, "shape", ())
    sides = [side for side in shape if side > 4]
    return len(shape) in (2, 3) and len(sides) == 2 and min(sides) >= least_side


def is_column(column: Any) -> bool:
    """Whether it is a column of pictures: stacked, or in a list."""
    if isinstance(column, (list, tuple)):
        return bool(column) and all(one is None or is_picture(one) for one in column) and any(map(is_picture, column))
    shape: tuple[int, ...] = tuple(getattr(column, "shape", ()))
    return len(shape) in (3, 4) and bool(shape[0]) and is_picture(column[0]) and (len(shape) == 4 or shape[0] > 4)


def _reading(picture: Any) -> MarkReading | None:
    """The mark of a picture; None if it cannot be decoded, like a truncated one that was only opened."""
    if isinstance(picture, (bytes, bytearray)):
        return None
    try:
        return read_mark(picture)
    except Exception:  # noqa: BLE001 - any error of a decoder
        return None
