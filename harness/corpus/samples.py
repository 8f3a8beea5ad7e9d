"""The samples of a corpus one by one, as they are stored, for writers of other formats."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..contract.samples import Sample
from ..errors import one_line
from . import content, gzipped, tablereaders, tarfiles
from .base import SampleRecord, State
from .folders import LocalFolder
from .layout import storage_of
from .manifest import read_recipe, read_samples
from .recipe import kind_of

_SPECIAL = {
    "fifo": "its path is a named pipe",
    "dangling-link": "its path is a link to nothing",
    "directory": "its path is a folder",
    "no-permission": "its file may not be read",
}

Own = tuple["bytes | None", "Mapping[str, Any] | None", str]
"""A sample's bytes, its fields, and why it has neither."""


@dataclasses.dataclass(frozen=True)
class StoredSamples:
    """All samples of a corpus, in order of their ids, without those that are missing. Picklable."""

    root: str

    def __call__(self) -> Iterator[Sample]:
        """Each sample; one file is in memory at a time."""
        recipe = read_recipe(self.root)
        storage = storage_of(recipe, kind_of(recipe.kind).formats)
        where = LocalFolder(self.root)
        opened = functools.lru_cache(maxsize=1)(lambda path: _OPEN[recipe.kind](where.look(path)[1] or b"", storage))
        rows: collections.Counter[tuple[str, int | None]] = collections.Counter()
        for record in read_samples(self.root):
            place = rows[record.path, record.row_group]
            rows[record.path, record.row_group] += 1
            if record.state is State.MISSING:
                continue
            if record.special is not None:
                own: Own = None, None, _SPECIAL[record.special]
            else:
                own = opened(record.path)(record, place)
            yield _sample(record, own)


def _sample(record: SampleRecord, own: Own) -> Sample:
    held, parsed, lost = own
    if record.state is State.DAMAGED and held is not None and hashlib.sha256(held).hexdigest() == record.content:
        lost = "the damage is in its file, and not in the sample"
    state = "odd" if record.state is State.GOOD and record.oddity is not None else record.state.value
    fault = str((record.fault or record.oddity or {}).get("fault", ""))
    key = tarfiles.split(record.members[0])[0] if record.members else ""
    return Sample(record.id, state, fault, record.path, key, held, parsed, lost)


Reader = Callable[[SampleRecord, int], Own]
"""Gives a sample of one file by its record and its place in its row group."""


def _picture(data: bytes, storage: str) -> Reader:
    return lambda record, place: (data, {"picture": data, "label": record.path.partition("/")[0]}, "")


def _lines(data: bytes, storage: str) -> Reader:
    text, _ = gzipped.decompress(data) if storage.endswith(".gz") else (data, None)
    lines = text.split(b"\n")
    taken: set[int] = set()

    def own(record: SampleRecord, place: int) -> Own:
        row = record.row or 0
        line = lines[row] if row < len(lines) else b""
        if row in taken:
            return None, None, "it shares a line with another sample"
        taken.add(row)
        if not line:
            return None, None, "its line is gone"
        try:
            value = json.loads(line.decode("utf-8"))
        except ValueError:
            value = None
        return line, value if isinstance(value, dict) else None, ""

    return own


def _rows(data: bytes, storage: str) -> Reader:
    groups: dict[int, list[dict[str, Any]] | str] = {}
    try:
        read: Callable[[int], Any] | None = tablereaders.opened(storage, data)
        refused = ""
    except Exception as error:  # noqa: BLE001 - damaged bytes make readers raise errors of many classes
        read, refused = None, f"its file cannot be read: {one_line(error)}"

    def group(number: int) -> list[dict[str, Any]] | str:
        try:
            assert read is not None
            return list(read(number).to_pylist())
        except Exception as error:  # noqa: BLE001 - the same
            return f"its row group cannot be read: {one_line(error)}"

    def own(record: SampleRecord, place: int) -> Own:
        if read is None:
            return None, None, refused
        number = record.row_group or 0
        if number not in groups:
            groups[number] = group(number)
        rows = groups[number]
        if isinstance(rows, str):
            return None, None, rows
        if place >= len(rows):
            return None, None, "its row is gone"
        return content.canonical(rows[place]), rows[place], ""

    return own


def _members(data: bytes, storage: str) -> Reader:
    given = tarfiles.READERS["tarfile-resync"](data, storage.endswith(".gz"))
    found = {f"{key}.{field}": content for key, fields in given.groups for field, content in fields}

    def own(record: SampleRecord, place: int) -> Own:
        members = {tarfiles.split(name)[1]: found[name] for name in dict.fromkeys(record.members) if name in found}
        if not members:
            return None, None, "its members are gone"
        return b"".join(members.values()), members, ""

    return own


_OPEN: dict[str, Callable[[bytes, str], Reader]] = {
    "imagefolder": _picture,
    "jsonl": _lines,
    "parquet": _rows,
    "windows": _rows,
    "webdataset": _members,
}
