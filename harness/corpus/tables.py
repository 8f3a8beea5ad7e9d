"""Kinds whose samples are rows of tables: rows are made, damaged, written as a file, and read back to measure the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import UserError
from . import content, tablefiles, tablereaders
from .base import Chunk, CorpusKind, DiskFault, MadeFile, Recipe
from .declared import Declared
from .layout import Layout, StoredFault, check_choices, storage_of
from .records import record_of

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPS = 4  # row groups in a file, so that the loss of one differs from the loss of the file
_CHUNK, _CHUNK_OF_FILES = 4000, 400  # samples, and samples with one file each: about half a second's work


class TableFault(StoredFault):
    """Base class of the faults of rows and tables."""

    def change_rows(self, rows: list[dict[str, Any]], place: int) -> None:
        """Change the row at ``place`` among the rows of its file."""
        self.change_row(rows[place])

    def change_table(self, table: pa.Table) -> pa.Table:
        """The file's table, damaged: its columns or their types."""
        return table

    def change_groups(self, groups: list[int]) -> list[int]:
        """The sizes of the file's row groups, in rows."""
        return groups

    def with_checksums(self) -> bool:
        """Whether the file is written with a checksum for each page."""
        return False


class TableKind(CorpusKind):
    """A kind of corpus whose files are tables."""

    declared: ClassVar[Declared]
    libraries = ("pyarrow", "faker", "numpy", "duckdb")

    def check(self, recipe: Recipe) -> None:
        check_choices(recipe, storage_of(recipe, self.formats))
        try:
            import pyarrow  # noqa: F401 - only to see whether it is installed
        except ImportError as error:
            raise UserError(
                "tables are written by pyarrow, which is not installed: pip install 'badbatch[corpus]'"
            ) from error
        self.declared.row(recipe.seed, 0)

    def _layout(self, recipe: Recipe) -> Layout:
        storage = storage_of(recipe, self.formats)
        return Layout(recipe, storage, 1 if storage == "npz" else recipe.per_file)

    def chunks(self, recipe: Recipe) -> Iterator[Chunk]:
        layout = self._layout(recipe)
        return layout.chunks(_CHUNK if layout.per_file > 1 else _CHUNK_OF_FILES)

    def undamaged(self, recipe: Recipe, sample: int) -> bytes:
        return content.canonical(self._row(recipe, sample, self._layout(recipe).of_sample(sample)))

    def _row(self, recipe: Recipe, sample: int, fault: DiskFault | None) -> dict[str, Any]:
        row = self.declared.row(recipe.seed, sample)
        if isinstance(fault, StoredFault) and fault.odd:
            fault.change_row(row)
        return row

    def make(self, recipe: Recipe, chunk: Chunk) -> Iterator[MadeFile]:
        layout = self._layout(recipe)
        for number in chunk.payload:
            yield from self._file(recipe, layout, number)

    def _file(self, recipe: Recipe, layout: Layout, number: int) -> Iterator[MadeFile]:
        import pyarrow as pa

        storage = storage_of(recipe, self.formats)
        path = _path(storage, number)
        ids = layout.ids(number)
        faults = [layout.of_sample(sample) for sample in ids]
        whole = layout.of_file(number)
        carried_out = faults[0] if layout.per_file == 1 else whole  # a file that is one sample has that sample's fault
        strike = carried_out if isinstance(carried_out, TableFault) else TableFault()

        good = [self._row(recipe, sample, fault) for sample, fault in zip(ids, faults)]
        digests = [content.canonical(row) for row in good]
        schema = self.declared.schema
        wanted = pa.Table.from_pylist(good, schema=schema)
        rows = [dict(row) for row in good]
        for place, fault in enumerate(faults):
            if isinstance(fault, TableFault) and not fault.odd and fault.level == "sample":
                rows[place] = self.declared.row(
                    recipe.seed, ids[place]
                )  # the lists of the good row must not change with it
                fault.change_rows(rows, place)
        stored = [content.canonical(row) for row in rows]

        table = strike.change_table(wanted if stored == digests else pa.Table.from_pylist(rows, schema=schema))
        size = -(-len(ids) // _GROUPS)
        groups = strike.change_groups([min(size, len(ids) - start) for start in range(0, len(ids), size)])
        data, regions = tablefiles.write(storage, table, groups, strike.with_checksums())
        data = strike.change_bytes(data, regions)
        said = tablereaders.judge(data, storage, self.declared, wanted, digests, groups)

        group_of = [which for which, rows_in in enumerate(groups) for _ in range(rows_in)]
        records = tuple(
            record_of(
                sample,
                path,
                said[place],
                stored=stored[place],
                wanted=digests[place],
                own=faults[place],
                whole=whole,
                row=place,
                row_group=group_of[place],
            )
            for place, sample in enumerate(ids)
        )
        yield MadeFile(path, data, records, fault=None if whole is None else whole.to_json())
        if strike.adds_file is not None:
            empty, _ = tablefiles.write(storage, wanted.slice(0, 0), [0])
            yield MadeFile(_path(storage, number, f"-{strike.adds_file}"), empty, fault=strike.to_json())


def _path(storage: str, number: int, ending: str = "") -> str:
    if storage == "npz":  # one file each: at most a thousand in one folder
        return f"data/{number // 1000:05d}/{number:08d}{tablefiles.SUFFIX[storage]}"
    return f"data/part-{number:05d}{ending}{tablefiles.SUFFIX[storage]}"
