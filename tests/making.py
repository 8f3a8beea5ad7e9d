"""Makes a corpus of any kind in memory, without the engine, for tests of what the kind itself promises."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from badbatch.harness.corpus.base import Choice, CorpusKind, MadeFile, Recipe, SampleRecord, State


def kind_of(name: str) -> CorpusKind:
    """The corpus kind of this name."""
    found: CorpusKind = importlib.import_module(f"badbatch.harness.corpus.{name}").KIND
    return found


@dataclass(frozen=True)
class Made:
    """A finished corpus."""

    recipe: Recipe
    files: Mapping[str, MadeFile]
    records: tuple[SampleRecord, ...]

    def by_fault(self, kind: str) -> list[SampleRecord]:
        """The samples whose record names this fault or oddity."""
        return [
            record
            for record in self.records
            if kind in (dict(record.fault or {}).get("fault"), dict(record.oddity or {}).get("fault"))
        ]

    def holds(self, kind: str) -> bool:
        """Whether this fault or oddity struck a sample or a file."""
        return bool(self.by_fault(kind)) or any((file.fault or {}).get("fault") == kind for file in self.files.values())

    def states(self) -> set[State]:
        """All that occur."""
        return {record.state for record in self.records}

    def write(self, folder: Path) -> Path:
        """The files below ``folder``, as the engine would put them; gives the folder of data."""
        for path, file in self.files.items():
            assert file.data is not None
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(file.data)
        return folder / "data"


def made(kind: str, samples: int = 60, *, faults: Any = (), odd: Any = (), **settings: Any) -> Made:
    """A corpus of ``kind``.

    Args:
        faults, odd: names, or (name, parameters); one third of the samples is struck where there are any.
    """

    def choices(named: Any) -> tuple[Choice, ...]:
        return tuple(Choice(one) if isinstance(one, str) else Choice(one[0], 1.0, one[1]) for one in named)

    defaults = {"damage": 1 / 3 if faults else 0.0, "oddities": 1 / 3 if odd else 0.0, "per_file": 20, "size": (64, 64)}
    recipe = Recipe(kind, samples, faults=choices(faults), odd_faults=choices(odd), **{**defaults, **settings})
    maker = kind_of(kind)
    maker.check(recipe)
    files = [file for chunk in maker.chunks(recipe) for file in maker.make(recipe, chunk)]
    records = tuple(record for file in files for record in file.records)
    assert [record.id for record in records] == list(range(samples))
    for record in records:  # every record survives its trip through the manifest
        assert SampleRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    return Made(recipe, {file.path: file for file in files}, records)
