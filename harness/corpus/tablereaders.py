"""Reference readers of tables, and what each says about every row of a file, group by group, as it really reads it."""

from __future__ import annotations

import functools
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import content, tablefiles
from .declared import Declared
from .oracles import NOTHING, WHOLE, lossy, raises

if TYPE_CHECKING:
    import pyarrow as pa

Piece = tuple[int, int, "pa.Table | str"]
"""First row, number of rows, and the reader's result for them: a table, or its message."""
Reader = Callable[[bytes, Declared, Sequence[int], int], Iterator[Piece]]
"""Called with a file's bytes, its declaration, the sizes of its groups and its first id (ids are consecutive)."""


def judge(
    data: bytes, storage: str, declared: Declared, wanted: pa.Table, digests: Sequence[bytes], groups: Sequence[int]
) -> list[dict[str, str]]:
    """What each reference reader of the format says about each row.

    Args:
        wanted: the undamaged rows, in the declared schema.
        digests: :func:`.content.canonical` of each undamaged row.
        groups: the sizes of the row groups that were written.
    """
    said: list[dict[str, str]] = [{} for _ in digests]
    first = wanted["id"][0].as_py() if len(wanted) else 0
    for name, read in readers(storage).items():
        words = [NOTHING] * len(digests)
        for start, size, given in read(data, declared, groups, first):
            if isinstance(given, str):
                words[start : start + size] = [given] * size
            elif given.equals(wanted.slice(start, size)):
                words[start : start + size] = [WHOLE] * size
            else:
                for place, row in enumerate(given.to_pylist()[:size], start):
                    words[place] = _verdict(row, digests[place], declared)
        for place, word in enumerate(words):
            said[place][name] = word
    return said


def readers(storage: str) -> dict[str, Reader]:
    """The reference readers of a format by name. DuckDB is a second reader of Parquet if it is installed."""
    found: dict[str, Reader] = dict(_READERS[storage])
    if storage == "parquet" and _duckdb(os.getpid()) is not None:
        found["duckdb"] = _by_duckdb
    return found


def _verdict(row: Mapping[str, Any], digest: bytes, declared: Declared) -> str:
    if content.canonical(row) == digest:
        return WHOLE
    problem = declared.problem(row)
    if problem is not None:
        return raises(f"declared: {problem}")
    ids = {name: sample for name, sample in content.check_row(row).items() if sample is not None}
    changed = [name for name, sample in ids.items() if sample == content.UNREADABLE]
    return lossy(f"{', '.join(changed)} changed" if changed else f"fields of samples {sorted(set(ids.values()))}")


def _mistyped(schema: pa.Schema, declared: Declared) -> str | None:
    for field in declared.schema:
        if field.name not in schema.names:
            return raises(f"declared: there is no {field.name}")
        if tablefiles.with_nulls(schema.field(field.name).type, True) != field.type:
            found = re.sub(r"\w+: ", "", str(schema.field(field.name).type))  # without the names of list items
            return raises(f"declared: {field.name} is {found}, not {declared.types[field.name]}")
    return None


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in this schema, as data set readers cast it: by column name; a missing column becomes null."""
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _by_group(
    opening: Callable[[], Opened],
    declared: Declared,
    groups: Sequence[int],
    strict: bool,
) -> Iterator[Piece]:
    """Each group separately.

    Damaged bytes make readers raise errors of many classes; all mean that the reader refuses.
    """
    try:
        read, schema = opening()
    except Exception as error:  # noqa: BLE001 - any error means that the reader refuses it
        yield 0, sum(groups), raises(error)
        return
    mistyped = _mistyped(schema, declared) if strict else None
    if mistyped is not None:
        yield 0, sum(groups), mistyped
        return
    starts = itertools.accumulate(groups, initial=0)
    for number, (start, size) in enumerate(zip(starts, groups)):
        try:
            table = read(number)
            table.validate(full=True)
            yield start, size, _cast(table, declared.schema)  # strict: cast to the same types, all nullable
        except Exception as error:  # noqa: BLE001 - any error means that the reader refuses it
            yield start, size, raises(error)


Opened = tuple[Callable[[int], "pa.Table"], "pa.Schema"]
"""Reads one row group of an open file by its number; and the file's schema."""


def _parquet(data: bytes, checksums: bool) -> Opened:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=checksums)
    return (lambda number: file.read_row_group(number, use_threads=False)), file.schema_arrow


def _arrow(data: bytes, checksums: bool) -> Opened:
    import pyarrow as pa

    file = pa.ipc.open_file(pa.BufferReader(data))
    return (lambda number: pa.Table.from_batches([file.get_batch(number)])), file.schema


def _npz(data: bytes, checksums: bool) -> Opened:
    import numpy as np
    import pyarrow as pa

    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    columns = {
        name: pa.array([array] if array.ndim else array.reshape(1), from_pandas=False)
        for name, array in arrays.items()
    }
    table = pa.table(columns)
    return (lambda number: table), table.schema


_OPEN: dict[str, Callable[[bytes, bool], Opened]] = {"parquet": _parquet, "arrow": _arrow, "npz": _npz}


def opened(storage: str, data: bytes) -> Callable[[int], pa.Table]:
    """Reads the row groups of a file by their number, in the types in which they are stored, and without check sums.

    Raises:
        Exception: of any class: the file is damaged. So may each call.
    """
    return _OPEN[storage](data, False)[0]


def _read(storage: str, data: bytes, declared: Declared, groups: Sequence[int], first: int, *, strict: bool) -> Iterator[Piece]:
    yield from _by_group(lambda: _OPEN[storage](data, strict), declared, groups, strict)


_READERS: dict[str, dict[str, Reader]] = {
    "parquet": {
        "pyarrow": functools.partial(_read, "parquet", strict=True),
        "pyarrow-cast": functools.partial(_read, "parquet", strict=False),
    },
    "arrow": {
        "pyarrow": functools.partial(_read, "arrow", strict=True),
        "pyarrow-cast": functools.partial(_read, "arrow", strict=False),
    },
    "npz": {
        "numpy": functools.partial(_read, "npz", strict=True),
        "numpy-cast": functools.partial(_read, "npz", strict=False),
    },
}
"""Each format's strict reader (exact types, checksums), and a lenient one that casts to the declared types."""


@functools.lru_cache(maxsize=1)
def _duckdb(pid: int) -> tuple[Any, Any] | None:
    """DuckDB's connection and the in-memory file system that it reads from, one for each process; None: not installed."""
    try:
        import duckdb
        import fsspec
    except ImportError:
        return None
    memory = fsspec.filesystem("memory")
    # Every file is read under the same name, so that messages are the same in every process. Nothing may be cached.
    connection = duckdb.connect(config={"threads": 1, "enable_external_file_cache": False})
    connection.register_filesystem(memory)
    return connection, memory


def _by_duckdb(data: bytes, declared: Declared, groups: Sequence[int], first: int) -> Iterator[Piece]:
    """The whole file at once; if that fails, each group by its range of ids."""
    both = _duckdb(os.getpid())
    assert both is not None
    connection, memory = both
    memory.pipe(_OPINION, data)

    def ask(condition: str) -> pa.Table:
        found = connection.sql(f"SELECT * FROM read_parquet('memory:/{_OPINION}') {condition}").to_arrow_table()
        return _cast(found, declared.schema)

    try:
        try:
            yield 0, sum(groups), ask("")
            return
        except Exception as error:  # noqa: BLE001 - any error means that the reader refuses it
            refused = raises(error)
        if len(groups) == 1:
            yield 0, groups[0], refused
            return
        for start, size in zip(itertools.accumulate(groups, initial=0), groups):
            try:
                yield start, size, ask(f"WHERE id BETWEEN {first + start} AND {first + start + size - 1}")
            except Exception as error:  # noqa: BLE001 - any error means that the reader refuses it
                yield start, size, raises(error)
    finally:
        memory.rm(_OPINION)


_OPINION = "/badbatch-opinion.parquet"
