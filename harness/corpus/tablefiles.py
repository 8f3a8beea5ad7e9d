"""Tables as bytes: Parquet, an Arrow IPC file, and one ``.npz`` for each window; and where the parts of such a file are."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .layout import Regions

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = {"parquet": ".parquet", "arrow": ".arrow", "npz": ".npz"}


def write(storage: str, table: pa.Table, groups: Sequence[int], checksums: bool = False) -> tuple[bytes, Regions]:
    """The table as a file with row groups (or record batches) of these sizes, which may be 0.

    An ``.npz`` contains one row.

    The file's schema says of each column that it is required (not null, at every level), unless there is a null in it.

    Args:
        checksums: with a checksum for each page, if the format has them (Parquet).
    """
    table = _required(table)
    if storage == "parquet":
        return _parquet(table, groups, checksums)
    return _arrow(table, groups) if storage == "arrow" else _npz(table)


def _required(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    fields = [
        field if _holds_null(column) else pa.field(field.name, with_nulls(field.type, False), nullable=False)
        for field, column in zip(table.schema, table.columns)
    ]
    return table.cast(pa.schema(fields))


def with_nulls(kind: pa.DataType, allowed: bool) -> pa.DataType:
    """The type whose lists are nullable, or not nullable, at every level."""
    import pyarrow as pa

    if not pa.types.is_list(kind):
        return kind
    return pa.list_(pa.field("item", with_nulls(kind.value_type, allowed), nullable=allowed))


def _holds_null(column: pa.ChunkedArray) -> bool:
    """Whether a column contains a null, at any level."""
    import pyarrow as pa
    import pyarrow.compute as pc

    while not column.null_count and pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    return bool(column.null_count)


def _slices(table: pa.Table, groups: Sequence[int]) -> list[pa.Table]:
    starts = itertools.accumulate(groups, initial=0)
    return [table.slice(start, size) for start, size in zip(starts, groups)]


def _parquet(table: pa.Table, groups: Sequence[int], checksums: bool) -> tuple[bytes, Regions]:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=checksums) as writer:
        for piece in _slices(table, groups):
            writer.write_table(piece, row_group_size=max(len(piece), 1))
    data = sink.getvalue()
    metadata = pq.read_metadata(io.BytesIO(data))
    groups_at, bodies = [], []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(index) for index in range(group.num_columns)]
        starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
        chunks = [(start, start + column.total_compressed_size) for start, column in zip(starts, columns)]
        groups_at.append((min(starts), max(stop for _, stop in chunks)))
        bodies.append(max(chunks, key=lambda chunk: chunk[1] - chunk[0]))
    # https://parquet.apache.org/docs/file-format/: …, the footer, its length in 4 bytes, "PAR1".
    return data, Regions(tuple(groups_at), tuple(bodies), len(data) - 8 - int.from_bytes(data[-8:-4], "little"))


def _arrow(table: pa.Table, groups: Sequence[int]) -> tuple[bytes, Regions]:
    import pyarrow as pa

    sink = io.BytesIO()
    ends = [0]
    with pa.ipc.new_file(sink, table.schema) as writer:
        for piece in _slices(table, groups):
            batches = piece.combine_chunks().to_batches()
            writer.write_batch(batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema))
            ends.append(sink.tell())
    data = sink.getvalue()
    # https://arrow.apache.org/docs/format/Columnar.html: …, the footer, its length in 4 bytes, "ARROW1".
    groups_at = tuple(itertools.pairwise(ends))
    return data, Regions(groups_at, groups_at, len(data) - 10 - int.from_bytes(data[-10:-6], "little"))


def _npz(table: pa.Table) -> tuple[bytes, Regions]:
    import numpy as np

    arrays: dict[str, Any] = {}
    for field in table.schema:
        value = table[field.name][0].as_py()
        kind = field.type.value_type if hasattr(field.type, "value_type") else field.type
        if value is None or (isinstance(value, list) and None in value):
            arrays[field.name] = np.array(value, dtype=object)  # pickled, as numpy does
        else:
            arrays[field.name] = np.array(value, dtype=np.str_ if str(kind) == "string" else kind.to_pandas_dtype())
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    data = sink.getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        member = archive.getinfo("values.npy")
        footer = archive.start_dir
    # The local header: 30 bytes, the name, an extra field whose length is at 28.
    start = member.header_offset
    extra = int.from_bytes(data[start + 28 : start + 30], "little")
    body = start + 30 + len("values.npy") + extra
    whole = ((body, body + member.compress_size),)
    return data, Regions(whole, whole, footer)
