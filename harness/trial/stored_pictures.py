"""The pictures of a corpus, read again in a trial, so that what arrived can be compared with them."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..corpus import tarfiles
from ..corpus.base import SampleRecord, State
from ..corpus.manifest import read_recipe

if TYPE_CHECKING:
    from PIL import Image

_ENDINGS = ("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff")


class StoredPictures:
    """Reads the stored pictures of samples.

    Files are opened relative to the folder's descriptor: the record of opens sees paths below the corpus, and must not
    count these reads as the loader's.
    """

    def __init__(self, root: str, records: Sequence[SampleRecord]) -> None:
        self._root = root
        self._records: Mapping[int, SampleRecord] = {record.id: record for record in records}

    def data(self, sample: int) -> bytes | None:
        """The bytes of the picture as stored; None: there are none, or they are not in an ordinary file."""
        record = self._records.get(sample)
        if record is None or record.special is not None or record.row is not None:
            return None
        try:
            data = self._contents(record.path)
        except OSError:
            return None
        return data if not record.members else _member(record, data)

    def good(self, sample: int) -> Image.Image | None:
        """The picture of a good sample; None: it is not good, or has no readable picture.

        A good sample that is not in an ordinary file (a slow pipe) is made again from the recipe.
        """
        record = self._records.get(sample)
        if record is None or record.state not in (State.GOOD, State.SLOW):
            return None
        data = self.data(sample)
        if data is None and record.special is not None:
            from ..corpus.recipe import kind_of

            recipe = read_recipe(self._root)
            data = kind_of(recipe.kind).undamaged(recipe, sample)
        return None if data is None else decoded(data)

    def _contents(self, path: str) -> bytes:
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.fdopen(os.open(path, os.O_RDONLY, dir_fd=root), "rb") as file:
                return file.read()
        finally:
            os.close(root)


def _member(record: SampleRecord, shard: bytes) -> bytes | None:
    """The picture among a sample's members."""
    wanted = {tarfiles.split(member) for member in record.members}
    given = tarfiles.READERS["tarfile-resync"](shard, record.path.endswith(".gz"))
    return next(
        (data for key, members in given.groups for field, data in members if field in _ENDINGS and (key, field) in wanted), None
    )


def decoded(data: bytes, *, lenient: bool = False) -> Image.Image | None:
    """The picture in a file's bytes; None: it cannot be decoded.

    Args:
        lenient: a missing part is filled.
    """
    from PIL import Image, ImageFile

    before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, lenient or ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        picture = Image.open(io.BytesIO(data))
        picture.load()
        return picture
    except Exception:  # noqa: BLE001 - any error of a decoder: there is no picture
        return None
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before
