"""Reads a batch of any form: which samples are in it, and is each what was written?"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import identity
from ..articles import with_article
from ..faults import Effect, Read
from ..plan import FaultPlan
from .event_log import Content

ID_KEYS = ("id", "ids", "__key__", "index", "path")
_LAST_DIGITS = re.compile(r"(\d+)(?!.*\d)", re.DOTALL)
_NOTHING = object()

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]


class UnreadableBatch(Exception):
    """No ids were found in a batch; the message says what was looked at."""


class BatchReader:
    """Finds ids and judges content.

    Args:
        plan: the trial's plan, which knows how its legal oddities look.
        ids: the factory's own ``@loader(ids=…)`` function, if any.
        lookup: from a sample's path or key to its id, for sources on disk; None: samples have neither.
    """

    def __init__(
        self,
        plan: FaultPlan,
        ids: Callable[[Any], Any] | None = None,
        lookup: Callable[[str], int | None] | None = None,
    ) -> None:
        self._ids = ids
        self._lookup = lookup
        self.names = lookup
        """From a path or key to the sample's id, for sources on disk."""
        self.wrong: list[tuple[int, Any]] = []
        """The pictures of the last batch that are not what was written: (id, or -1 if it is not known; picture)."""
        self.fields: Ids | None = None
        """For each sample of the last batch, which fields it has; None: not known."""
        self._odd: dict[int, npt.NDArray[np.float64]] = {}
        for sample, fault in plan.items():
            if fault.effect is Effect.LEGAL:
                self._odd[sample] = _odd_content(fault, sample)

    def read(self, batch: Any) -> tuple[Ids, Flags]:
        """Ids (n,) int64, -1 for a sample without one, and for each its :class:`Content` flags.

        Raises:
            UnreadableBatch: no ids can be found.
        """
        if self._ids is not None:
            ids = self._as_ids(self._ids(batch))
            if ids is None:
                raise UnreadableBatch("@loader(ids=…) returned no sequence of whole numbers")
            return ids, self._judge(ids, batch if isinstance(batch, Mapping) else {})
        if isinstance(batch, Mapping):
            return self._mapping(batch)
        if isinstance(batch, (list, tuple)):
            return self._sequence(batch)
        for name in ID_KEYS:
            ids = self._as_ids(getattr(batch, name, None))
            if ids is not None:
                x = getattr(batch, "x", None)
                return ids, self._judge(ids, {} if x is None else {"x": x})
        ids = self._as_ids(batch)
        if ids is not None:
            return ids, self._judge(ids, {})
        raise UnreadableBatch(_looked_at(batch))

    def _mapping(self, batch: Mapping[Any, Any]) -> tuple[Ids, Flags]:
        for name in ID_KEYS:
            if name in batch:
                ids = self._as_ids(batch[name])
                if ids is not None:
                    return ids, self._judge(ids, batch)
        raise UnreadableBatch(_looked_at(batch))

    def _sequence(self, batch: Sequence[Any]) -> tuple[Ids, Flags]:
        if not batch:
            return np.empty(0, np.int64), np.empty(0, np.uint8)
        if isinstance(batch, tuple) and hasattr(batch, "_asdict") and _has_ids(batch._asdict()):
            return self._mapping(batch._asdict())
        mappings = [member for member in batch if isinstance(member, Mapping)]
        if mappings and all(member is None or isinstance(member, Mapping) for member in batch):
            if len(batch) > 1 or _is_one_id(_first_id(batch[0])):
                return self._samples(batch)
            return self._mapping(mappings[0])
        if all(member is None for member in batch):
            return np.full(len(batch), -1, np.int64), np.full(len(batch), Content.MARKED, np.uint8)
        if len(mappings) == 1:
            return self._mapping(mappings[0])
        vectors = [ids for member in batch if not _is_names(member) and (ids := self._as_ids(member, True)) is not None]
        vectors = vectors or [ids for member in batch if _is_names(member) and (ids := self._as_ids(member)) is not None]
        if len(vectors) == 1:
            rest = [member for member in batch if _dimensions(member) == 2]
            return vectors[0], self._judge(vectors[0], {"x": rest[0]} if len(rest) == 1 else {})
        if len(vectors) == 0:
            ids = self._as_ids(batch)
            if ids is not None:
                return ids, self._judge(ids, {})
        raise UnreadableBatch(_looked_at(batch))

    def _samples(self, batch: Sequence[Any]) -> tuple[Ids, Flags]:
        """A list of samples, not collated; None means a sample that is marked as missing."""
        ids = np.full(len(batch), -1, np.int64)
        flags = np.full(len(batch), Content.MARKED, np.uint8)
        for position, member in enumerate(batch):
            if member is not None:
                one, flag = self._mapping({key: [value] for key, value in member.items()})
                ids[position], flags[position] = one[0], flag[0]
        return ids, flags

    def _as_ids(self, value: Any, vector: bool = False) -> Ids | None:
        if value is None or isinstance(value, Mapping) or (vector and isinstance(value, (str, os.PathLike))):
            return None
        if isinstance(value, (str, os.PathLike)):
            value = [value]
        if _is_names(value):
            named = [self._named(os.fspath(entry)) for entry in value]
            return None if None in named else np.array(named, np.int64)
        nothing = isinstance(value, (list, tuple)) and not value and not vector
        array = np.empty(0, np.int64) if nothing else _plain(value)
        if array is None or array.dtype.kind not in "iu" or (vector and array.ndim != 1):
            return None
        if array.ndim > 1 and array.size != len(array):  # one number for each sample, whether in a column or not
            return None
        return array.reshape(-1).astype(np.int64)

    def _named(self, name: str) -> int | None:
        if self._lookup is not None:
            return self._lookup(name)
        digits = _LAST_DIGITS.search(name)
        return int(digits.group(1)) if digits else None

    def _judge(self, ids: Ids, batch: Mapping[Any, Any]) -> Flags:
        flags = np.full(len(ids), Content.UNCHECKED, np.uint8)
        if "x" in batch:
            self._judge_rows(ids, batch["x"], flags)
        marked = ids < 0
        for name, sense in (("missing", True), ("valid", False)):
            mask = _plain(batch.get(name))
            if mask is not None and mask.shape == ids.shape:
                marked |= mask.astype(bool) == sense
        flags[marked] = Content.MARKED
        return flags

    def _judge_rows(self, ids: Ids, x: Any, flags: Flags) -> None:
        if x is None:
            flags[:] = Content.MARKED
            return
        stacked = _plain(x)
        if stacked is not None and stacked.shape == (len(ids), identity.WIDTH) and stacked.dtype.kind == "f":
            flags[:] = np.where(identity.intact(ids, stacked), Content.WHOLE, Content.WRONG)
            suspects = np.flatnonzero((flags == Content.WRONG) | (np.isin(ids, list(self._odd)) if self._odd else False))
        else:
            suspects = np.arange(len(ids))
        for position in suspects:  # oddities, samples that are not collated, and real damage: few, or small batches
            flags[position] = self._judge_row(int(ids[position]), _entry(x, int(position)))

    def _judge_row(self, sample: int, row: Any) -> Content:
        if row is None:
            return Content.MARKED
        found = None if row is _NOTHING else _plain(row)
        if found is None or found.dtype.kind not in "fiu":
            return Content.WRONG
        wanted = self._odd.get(sample)
        if wanted is None:
            wanted = identity.rows([sample])[0].astype(np.float64) if sample >= 0 else np.empty(0)
        same = found.shape == wanted.shape and np.allclose(found, wanted, atol=1e-3, rtol=0, equal_nan=True)
        return Content.WHOLE if same else Content.WRONG


def _odd_content(fault: Any, sample: int) -> npt.NDArray[np.float64]:
    import torch

    pristine = {"id": sample, "x": torch.from_numpy(identity.rows([sample])[0])}
    read = Read(sample=sample, value=lambda: dict(pristine), took_hold=lambda: None, attempt=lambda: 0)
    return np.asarray(fault.strike(read)["x"], dtype=np.float64)


def _has_ids(batch: Mapping[Any, Any]) -> bool:
    return any(name in batch for name in ID_KEYS)


def _first_id(member: Mapping[Any, Any]) -> Any:
    for name in ID_KEYS:
        if name in member:
            return member[name]
    return None


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(one, (str, os.PathLike)) for one in value)


def _is_one_id(value: Any) -> bool:
    """Whether an id is that of one sample, and not a column of them."""
    if isinstance(value, (list, tuple)):
        return False
    return _dimensions(value) == 0


def _plain(value: Any) -> npt.NDArray[Any] | None:
    """Any array-like as a numpy array; None if there is no numeric array in it."""
    if value is None or isinstance(value, (str, bytes, Mapping)):
        return None
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # numpy has no such type
            value = value.float()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged, or an object that refuses
        return None
    return array if array.dtype.kind in "biuf" else None


def _dimensions(value: Any) -> int:
    array = _plain(value)
    return 0 if array is None else array.ndim


def _entry(column: Any, position: int) -> Any:
    try:
        return column[position]
    except (IndexError, KeyError, TypeError):
        return _NOTHING


def _looked_at(batch: Any) -> str:
    if isinstance(batch, Mapping):
        what = f"a mapping with the keys {', '.join(map(repr, list(batch)[:8]))}"
    elif isinstance(batch, (list, tuple)):
        what = f"{with_article(type(batch).__name__)} of {', '.join(type(member).__name__ for member in batch[:8])}"
    else:
        what = f"a {type(batch).__module__}.{type(batch).__qualname__}"
    return (
        f"no sample ids found in {what}; give the batch a key or attribute named one of {', '.join(ID_KEYS)}, "
        "or declare @loader(ids=lambda batch: …)"
    )
