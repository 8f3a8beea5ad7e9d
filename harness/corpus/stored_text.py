"""The text of a sample, for kinds with several samples in a file: as it was before the damage, and as it is stored."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

from . import content, gzipped, tablereaders, tarfiles
from .base import CorpusKind, Recipe, SampleRecord
from .folders import Folder
from .layout import storage_of
from .oracles import NOTHING, raises
from .tables import TableKind
from .webdataset import WebDatasetKind

_TEXTS = ("cls", "json", "txt")  # members of a sample that are texts


class StoredTexts:
    """Reads the texts of the samples of one corpus.

    Args:
        groups: for each path the sizes of its row groups, from the manifest.
    """

    def __init__(self, where: Folder, kind: CorpusKind, recipe: Recipe, groups: Mapping[str, Sequence[int]]) -> None:
        self._where = where
        self._kind = kind
        self._recipe = recipe
        self._groups = groups
        self._storage = storage_of(recipe, kind.formats)
        self._file = functools.lru_cache(maxsize=1)(lambda path: where.look(path)[1])  # samples of one file are read one after the other

    def before(self, record: SampleRecord) -> str:
        """The undamaged row or line as JSON; for a sample in a shard its members, one after the other."""
        if isinstance(self._kind, WebDatasetKind):
            members = self._kind.members(self._recipe, record.id)
            return _listed((f"{record.id:08d}.{field}", data) for field, data in members.items())
        return _decoded(self._kind.undamaged(self._recipe, record.id))

    def picture(self, record: SampleRecord) -> bytes:
        """The undamaged picture of a sample in a shard."""
        assert isinstance(self._kind, WebDatasetKind)
        members = self._kind.members(self._recipe, record.id)
        return next(data for field, data in members.items() if field in ("jpg", "png"))

    def after(self, record: SampleRecord) -> tuple[str | None, str]:
        """The sample as a lenient reader finds it, in the same form; or None, and the reader's message."""
        data = self._file(record.path)
        if data is None:
            return None, "there is no file"
        try:
            if isinstance(self._kind, TableKind):
                return self._row(self._kind, record, data)
            if isinstance(self._kind, WebDatasetKind):
                return self._members(record, data)
            return self._line(record, data)
        except Exception as error:  # noqa: BLE001 - damaged bytes make readers raise errors of many classes
            return None, raises(error)

    def _row(self, kind: TableKind, record: SampleRecord, data: bytes) -> tuple[str | None, str]:
        *_, lenient = (reader for name, reader in tablereaders.readers(self._storage).items() if name.endswith("-cast"))
        row = record.row or 0
        groups = self._groups.get(record.path, (1,))
        for start, size, given in lenient(data, kind.declared, groups, record.id - row):
            if start <= row < start + size:
                if isinstance(given, str):
                    return None, given
                found = given.slice(row - start, 1).to_pylist()
                return (_decoded(content.canonical(found[0])), "") if found else (None, NOTHING)
        return None, NOTHING

    def _line(self, record: SampleRecord, data: bytes) -> tuple[str | None, str]:
        text, error = gzipped.decompress(data) if self._storage.endswith(".gz") else (data, None)
        line = next(itertools.islice(text.split(b"\n"), record.row or 0, None), b"")
        if line:
            return _decoded(line), ""
        return None, raises(error) if error else NOTHING

    def _members(self, record: SampleRecord, data: bytes) -> tuple[str | None, str]:
        given = tarfiles.READERS["tarfile-resync"](data, self._storage.endswith(".gz"))
        keys = {tarfiles.split(member)[0] for member in record.members}
        found = [(f"{key}.{field}", data) for key, members in given.groups if key in keys for field, data in members]
        if found:
            return _listed(found), ""
        return None, raises(given.error) if given.error else NOTHING


def _listed(members: Iterable[tuple[str, bytes]]) -> str:
    lines = []
    for name, data in members:
        text = _decoded(data) if name.rpartition(".")[2] in _TEXTS else f"{len(data):,} bytes"
        lines.append(f"{name}: {text}")
    return " · ".join(lines)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
