"""Reads a batch that came from disk: which stored samples are in it, is each what was written, with which of its fields?"""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..corpus import content, tarfiles
from ..corpus.base import SampleRecord, State
from ..corpus.manifest import read_samples
from ..faults.base import Effect
from ..plan import FaultPlan
from . import pictures
from .batch import ID_KEYS, BatchReader, Flags, Ids, UnreadableBatch, _entry, _looked_at, _plain
from .event_log import Content

FIELDS = ("id", "__key__", "path", "picture", "text", "number", "amount", "spans", "start_us", "values", "txt", "json", "cls")
"""The fields of stored samples that are distinguished; a picture's may have any name. Their order is that of the mask's
bits."""

_PICTURE_BIT = 1 << FIELDS.index("picture")
_NAMES = frozenset(("id", "ids", "__key__", "index", "path"))
"""Fields that name a sample, and prove nothing about its content."""
_CONTENT = frozenset((*FIELDS, *pictures.FIELDS)) - _NAMES
_NOTHING = object()


class Names:
    """Which stored sample is meant by a path (absolute, or relative to the corpus), a file's name, or a key of a tar shard.

    Picklable. What names several samples names none, and is :meth:`ambiguous`.
    """

    def __init__(self, root: str | Path, records: Sequence[SampleRecord]) -> None:
        self._root = os.path.realpath(root)
        self._ids: dict[str, int] = {}
        ambiguous: set[str] = set()
        for record in records:
            names = {tarfiles.split(member)[0] for member in record.members}
            if not names and record.row is None:
                names = {record.path, record.path.rpartition("/")[2]}
            for name in names:
                if self._ids.setdefault(name, record.id) != record.id:
                    ambiguous.add(name)
        for name in ambiguous:
            del self._ids[name]
        self._ambiguous = frozenset(ambiguous)

    def __call__(self, name: str) -> int | None:
        """The sample's id, or None."""
        return next((self._ids[form] for form in self._forms(name) if form in self._ids), None)

    def ambiguous(self, name: str) -> bool:
        """Whether several samples have this name."""
        return self(name) is None and any(form in self._ambiguous for form in self._forms(name))

    def _forms(self, name: str) -> Iterator[str]:
        for known in (name, os.path.relpath(os.path.realpath(name), self._root), name.rpartition("/")[2]):
            yield known.replace(os.sep, "/")


class StoredBatchReader(BatchReader):
    """Finds ids and judges content, by the manifest and by the samples themselves.

    Args:
        root: the corpus.
        plan: the trial's, with the legal oddities: only there a field may contain no id.
        ids: the factory's own ``@loader(ids=…)`` function, if any.
        integers_are_ids: whether a column of integers in a tuple contains ids; otherwise it contains classes.
    """

    def __init__(
        self,
        root: Path,
        plan: FaultPlan,
        ids: Callable[[Any], Any] | None = None,
        *,
        integers_are_ids: bool = False,
    ) -> None:
        records = list(read_samples(os.fspath(root)))
        names = Names(root, records)
        super().__init__(FaultPlan(), ids, names)
        self.names: Names = names
        self._integers_are_ids = integers_are_ids
        self._legal = {sample for sample, fault in plan.items() if fault.effect is Effect.LEGAL}
        self._pictures = pictures.PictureJudge(os.fspath(root), records, self._legal)
        self._contested = {record.id for record in records if record.state is State.CONTESTED}
        self.fields = np.empty(0, np.int64)
        self._held = len(records)

    def read(self, batch: Any) -> tuple[Ids, Flags]:
        """See :meth:`BatchReader.read`; :attr:`fields` then has a bit for each of :data:`FIELDS`."""
        rows = self._rows(_plain_batch(batch))
        if rows is None:
            raise UnreadableBatch(_looked_at(batch))
        given = None
        if self._ids is not None:
            given = self._as_ids(self._ids(batch))
            if given is None or len(given) != len(rows):
                raise UnreadableBatch("@loader(ids=…) returned no sequence of whole numbers, one for each sample")
        judged = [self._row(row, None if given is None else int(given[place])) for place, row in enumerate(rows)]
        self.wrong = [
            (sample, picture)
            for row, (sample, flag, _) in zip(rows, judged, strict=True)
            if flag & Content.WRONG and sample not in self._contested and (picture := _first_picture(row)) is not None
        ]
        if judged and all(sample < 0 and flag != Content.MARKED for sample, flag, _ in judged) and not self._may_be_odd(judged):
            raise UnreadableBatch(_unknown(rows, batch))
        self.fields = np.array([fields for _, _, fields in judged], np.int64)
        return (
            np.array([sample for sample, _, _ in judged], np.int64),
            np.array([flag for _, flag, _ in judged], np.uint8),
        )

    def _may_be_odd(self, judged: Sequence[tuple[int, Content, int]]) -> bool:
        """Whether pictures without a name are among them, and there are oddities without a mark."""
        return self._pictures.some_bear_no_mark and any(flag == Content.UNCHECKED and fields & _PICTURE_BIT for _, flag, fields in judged)

    # --- from a batch to rows ------------------------------------------------------------------------------------

    def _rows(self, batch: Any) -> list[Mapping[str, Any] | None] | None:
        """One mapping for each sample, from field to value; None for a sample that is marked as missing."""
        if isinstance(batch, (list, tuple)) and batch and all(one is None or isinstance(one, Mapping) for one in batch):
            return list(batch)
        columns = self._columns(batch)
        length = self._length(columns)
        if length is None:
            return None
        rows: list[Mapping[str, Any] | None] = []
        for place in range(length):
            missing = any(_marks(columns.get(name), place, sense) for name, sense in (("missing", True), ("valid", False)))
            row = {name: value for name, column in columns.items() if (value := _at(column, place, length)) is not _NOTHING}
            rows.append(None if missing and not row.keys() & _NAMES else {**row, "missing": missing})
        return rows

    def _columns(self, batch: Any) -> dict[str, Any]:
        if isinstance(batch, Mapping):
            return {str(name): column for name, column in batch.items()}
        if isinstance(batch, tuple) and hasattr(batch, "_asdict"):
            return dict(batch._asdict())
        if isinstance(batch, (list, tuple)) and not (batch and all(map(pictures.is_picture, batch))):
            columns: dict[str, Any] = {}
            for member in batch:
                name = self._kind_of(member)
                if name is not None and name not in columns:
                    columns[name] = member
            return columns
        if isinstance(batch, (list, tuple)) or pictures.is_column(batch):
            return {"picture": batch}
        return {name: getattr(batch, name) for name in (*ID_KEYS, *FIELDS) if hasattr(batch, name)}

    def _kind_of(self, column: Any) -> str | None:
        """What one member of a tuple contains, by its form; None: nothing known."""
        if pictures.is_column(column):
            return "picture"
        if isinstance(column, (list, tuple)) and column:
            if all(isinstance(one, (str, os.PathLike)) for one in column):
                named = [self._named(os.fspath(one)) for one in column]
                return "path" if None not in named else "txt"
            if all(isinstance(one, (Mapping, str)) for one in column):
                return "json"
        array = _plain(column)
        if array is None or not array.size:
            return None
        if array.dtype.kind == "f" and array.ndim == 2:
            return "values"
        if array.dtype.kind in "iu" and array.ndim == 1 and self._integers_are_ids:
            return "start_us" if content.id_of_start(array[0]) >= 0 else "id"
        return None  # one integer for each picture is its class

    @staticmethod
    def _length(columns: Mapping[str, Any]) -> int | None:
        """The number of samples: the length of the column of ids, otherwise of most columns; None: there is no column."""
        lengths = {name: len(column) for name, column in columns.items() if _has_length(column)}
        for name in ID_KEYS:
            if name in lengths:
                return lengths[name]
        counted = collections.Counter(lengths.values())
        return counted.most_common(1)[0][0] if counted else None

    def _named(self, name: str) -> int | None:
        return -1 if self.names.ambiguous(name) else self.names(name)

    # --- from a row to its sample -----------------------------------------------------------------------------------

    def _row(self, row: Mapping[str, Any] | None, given: int | None) -> tuple[int, Content, int]:
        """Id, content flags and mask of fields of one sample."""
        if row is None:
            return -1 if given is None else given, Content.MARKED, 0
        row = {str(name): _unwrapped(value) for name, value in row.items()}
        named = self._name(row) if given is None else given if given >= 0 else None
        owners, whole, there = self._owners(row, named)
        mask = sum(1 << bit for bit, name in enumerate(FIELDS) if name in there)
        if row.get("missing") is True or _all_null(row):
            return -1 if named is None else named, Content.MARKED, mask
        said = [owner for owner in owners.values() if owner is not None and owner >= 0]
        sample = _majority(said, named)
        if not owners:
            return sample, Content.UNCHECKED, mask
        named_otherwise = named is not None and named >= 0 and named != sample
        silent_is_legal = sample in self._legal
        own = all(owner == sample or (owner is None and silent_is_legal) for owner in owners.values())
        if own and whole and sample >= 0 and not named_otherwise:
            return sample, Content.WHOLE, mask
        mixed = sample >= 0 and (named_otherwise or any(owner != sample and owner < self._held for owner in said))
        return sample, Content.WRONG | Content.MIXED if mixed else Content.WRONG, mask

    def _name(self, row: Mapping[str, Any]) -> int | None:
        """The sample that the row's id, key, index or path names."""
        for name in ID_KEYS:
            value = row.get(name)
            if isinstance(value, (str, os.PathLike)):
                found = self.names(os.fspath(value))
                if found is not None:
                    return found
            elif value is not None:
                found = content.id_of_id(value)
                if found >= 0:
                    return found
        return None

    def _owners(self, row: Mapping[str, Any], sample: int | None) -> tuple[dict[str, int | None], bool, set[str]]:
        """Which sample each content field belongs to, whether the pictures are whole, and which fields are present.

        Args:
            sample: the one that the row names, if it names one.
        """
        fields = {name: value for name, value in row.items() if name not in _NAMES and name != "missing"}
        named = {name: row[name] for name in ("id", "__key__") if row.get(name) is not None}
        found = content.check_row({**fields, **named})
        there = set(found) | ({"path"} if row.get("path") is not None else set())
        owners = {name: owner for name, owner in found.items() if name not in _NAMES}
        whole = True
        for name, value in fields.items():
            picture = pictures.picture_in(name, value)
            if picture is None:
                continue
            there.add("picture")
            owner, is_whole = self._pictures.owner(picture, sample)
            whole = whole and is_whole
            if owner is not None:
                owners[name] = owner
        return owners, whole, there


def _first_picture(row: Mapping[str, Any] | None) -> Any:
    found = (pictures.picture_in(str(name), value) for name, value in (row or {}).items())
    return next((picture for picture in found if picture is not None), None)


def _plain_batch(batch: Any) -> Any:
    """Tables of pyarrow and pandas as a mapping from column to list."""
    if hasattr(batch, "to_pydict"):
        return batch.to_pydict()
    if hasattr(batch, "to_dict") and hasattr(batch, "columns") and not isinstance(batch, Mapping):
        return batch.to_dict("list")
    return batch


def _has_length(column: Any) -> bool:
    if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__"):
        return False
    return getattr(column, "shape", None) != ()


def _at(column: Any, place: int, length: int) -> Any:
    """The column's entry for one sample; ``_NOTHING`` if it is not a column of that many samples."""
    if not _has_length(column) or len(column) != length:
        return _NOTHING
    return _entry(column, place)


def _marks(column: Any, place: int, sense: bool) -> bool:
    mask = _plain(column)
    return mask is not None and mask.ndim == 1 and place < len(mask) and bool(mask[place]) == sense


def _unwrapped(value: Any) -> Any:
    """An Arrow scalar as a Python value."""
    return value.as_py() if hasattr(value, "as_py") else value


def _all_null(row: Mapping[str, Any]) -> bool:
    """Whether the row has fields of content, and nothing in them."""
    values = [value for name, value in row.items() if name in _CONTENT]
    return bool(values) and all(value is None for value in values)


def _majority(said: Sequence[int], named: int | None) -> int:
    """The sample that most fields belong to; the named one if there is no majority."""
    counted = collections.Counter(said)
    if not counted:
        return -1 if named is None else named
    if named is not None:
        counted[named] += 1
    most = max(counted.values())
    if named is not None and counted[named] == most:
        return named
    return next(sample for sample, count in counted.items() if count == most)


def _unknown(rows: Sequence[Mapping[str, Any] | None], batch: Any) -> str:
    if any(row is not None and any(pictures.is_picture(value) for value in row.values()) for row in rows):
        return (
            "no id mark can be read in the pictures of the batch (is more than a tenth cropped, or are they rotated?): give it "
            "a key named path or id, or declare @loader(ids=lambda batch: …)"
        )
    return _looked_at(batch)
