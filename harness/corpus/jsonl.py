"""``jsonl``: one JSON object in each line, with the fields of ``parquet``, plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import UserError
from . import content, gzipped, lines
from .base import Chunk, CorpusKind, DiskFault, MadeFile, Recipe
from .layout import Layout, Regions, StoredFault, check_choices, storage_of
from .lines import Line, LineFault
from .records import record_of

_CHUNK = 4000  # samples: about half a second's work


class JsonLinesKind(CorpusKind):
    """One sample in each line; see :data:`.declared.ROWS` for its fields."""

    name = "jsonl"
    formats = ("jsonl", "jsonl.gz")
    libraries = ("faker", "pyarrow")

    def check(self, recipe: Recipe) -> None:
        check_choices(recipe, storage_of(recipe, self.formats))
        try:
            import pyarrow.json  # noqa: F401 - only to see whether it is installed
        except ImportError as error:
            raise UserError(
                "lines are judged by pyarrow, which is not installed: pip install 'badbatch[corpus]'"
            ) from error
        content.vocabulary(recipe.seed)

    def _layout(self, recipe: Recipe) -> Layout:
        return Layout(recipe, storage_of(recipe, self.formats), recipe.per_file)

    def chunks(self, recipe: Recipe) -> Iterator[Chunk]:
        return self._layout(recipe).chunks(_CHUNK)

    def undamaged(self, recipe: Recipe, sample: int) -> bytes:
        return self._line(recipe, sample, self._layout(recipe).of_sample(sample))[1]

    def _line(self, recipe: Recipe, sample: int, fault: DiskFault | None) -> tuple[dict[str, Any], bytes]:
        """The undamaged object and its line, without the newline."""
        row = content.row(recipe.seed, sample)
        if isinstance(fault, StoredFault) and fault.odd:
            fault.change_row(row)
        line = content.canonical(row)
        return row, fault.change_line(line) if isinstance(fault, LineFault) and fault.odd else line

    def make(self, recipe: Recipe, chunk: Chunk) -> Iterator[MadeFile]:
        layout = self._layout(recipe)
        for number in chunk.payload:
            yield from self._file(recipe, layout, number)

    def _file(self, recipe: Recipe, layout: Layout, number: int) -> Iterator[MadeFile]:
        storage = storage_of(recipe, self.formats)
        compressed = storage == "jsonl.gz"
        path = f"data/part-{number:05d}.{storage}"
        ids = layout.ids(number)
        faults = [layout.of_sample(sample) for sample in ids]
        whole = layout.of_file(number)

        good = [self._line(recipe, sample, fault) for sample, fault in zip(ids, faults)]
        text = bytearray()
        stored: list[Line] = []
        for (row, line), fault in zip(good, faults):
            struck = fault if isinstance(fault, LineFault) and not fault.odd else LineFault()
            changed = struck.change_line(line)
            stored.append(Line(row, len(text), len(text) + len(changed), plain=fault is None))
            text += changed + (b"\n" if struck.newline else b"")
        final = whole.change_text(bytes(text)) if isinstance(whole, LineFault) else bytes(text)
        data = gzipped.compress(final) if compressed else final
        if isinstance(whole, StoredFault):
            data = whole.change_bytes(data, Regions(((0, len(data)),), ((0, len(data)),), len(data)))
        said = lines.judge(data, compressed, stored)
        # Where a newline was lost, the following samples are one line earlier than their number.
        above = [bytes(text[: line.start]).count(b"\n") for line in stored]

        records = tuple(
            record_of(
                sample,
                path,
                said[place],
                stored=bytes(text[stored[place].start : stored[place].stop]),
                wanted=good[place][1],
                own=faults[place],
                whole=whole,
                neighbour=faults[place - 1] if place else None,
                row=above[place],
            )
            for place, sample in enumerate(ids)
        )
        yield MadeFile(path, data, records, fault=None if whole is None else whole.to_json())
        if isinstance(whole, StoredFault) and whole.adds_file is not None:
            empty = gzipped.compress(b"") if compressed else b""
            yield MadeFile(f"data/part-{number:05d}-{whole.adds_file}.{storage}", empty, fault=whole.to_json())


KIND = JsonLinesKind()
