"""The golden corpora: small ones of each kind, made by the command, and stored in the repository."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from badbatch.harness.corpus import content
from badbatch.harness.corpus.base import Recipe, SampleRecord, State
from badbatch.harness.corpus.kinds import KINDS
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.manifest import library_versions, read_samples
from badbatch.harness.corpus.recipe import kind_of
from badbatch.harness.corpus.verify import verify

GOLDEN = Path(__file__).parent.parent / "fixtures" / "golden"


def records(kind: str) -> list[SampleRecord]:
    return list(read_samples(str(GOLDEN / kind)))


def history_of(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / kind / "corpus.badbatch").read_bytes())
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_golden_corpus_is_as_its_manifest_says(kind: str) -> None:
    """Every byte is what the manifest says, and good samples are next to damaged ones."""
    assert [str(change) for change in verify(str(GOLDEN / kind), jobs=1)] == []
    assert {record.state for record in records(kind)} >= {State.GOOD, State.DAMAGED}


def test_one_changed_byte_is_noticed(tmp_path: Path) -> None:
    """Verification works: a single flipped bit in the largest file is found, and nothing else."""
    for kind in ("parquet", "webdataset", "jsonl"):
        for file in (GOLDEN / kind).rglob("*"):
            copy = tmp_path / kind / file.relative_to(GOLDEN / kind)
            if file.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes())
        victim = max(files(tmp_path / kind / "data"), key=lambda file: (file.stat().st_size, file.name))
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        assert len(list(verify(str(tmp_path / kind), jobs=1))) == 1


def test_the_golden_corpora_are_small() -> None:
    """All of them together stay below a megabyte."""
    assert sum(file.stat().st_size for file in GOLDEN.rglob("*") if file.is_file()) < 1_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_golden_corpus_is_made_again_from_its_recipe(kind: str, tmp_path: Path) -> None:
    """The recipe in ``corpus.badbatch`` gives the same bytes, where the same library versions are installed."""
    corpus = history_of(kind)
    if library_versions(kind_of(kind).libraries) != corpus["libraries"]:
        pytest.skip("the libraries that shaped its bytes are not installed in the same versions")
    make(str(tmp_path / kind), Recipe.from_json(corpus["recipe"]), jobs=1)
    again = {file.relative_to(tmp_path / kind): file for file in files(tmp_path / kind)}
    before = {file.relative_to(GOLDEN / kind): file for file in files(GOLDEN / kind)}
    assert sorted(again) == sorted(before)
    for name, file in before.items():
        if name.name != "corpus.badbatch":  # which names the version of badbatch
            assert again[name].read_bytes() == file.read_bytes(), name


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def good_rows(kind: str) -> Iterator[tuple[SampleRecord, dict[str, Any]]]:
    """Each good sample's record, and its fields as a plain reader finds them."""
    for record in records(kind):
        if record.state is not State.GOOD:
            continue
        data = (GOLDEN / kind / record.path).read_bytes()
        if kind == "jsonl":
            assert record.row is not None
            yield record, json.loads(data.split(b"\n")[record.row])
        elif kind == "webdataset":
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                read = {name.rpartition(".")[2]: archive.extractfile(name).read() for name in record.members}  # type: ignore[union-attr]
            yield record, {"__key__": record.members[0].rpartition(".")[0], **read}
        else:
            parquet = pytest.importorskip("pyarrow.parquet").ParquetFile(io.BytesIO(data))
            before = sum(parquet.metadata.row_group(group).num_rows for group in range(record.row_group or 0))
            yield record, parquet.read_row_group(record.row_group).to_pylist()[(record.row or 0) - before]


@pytest.mark.parametrize("kind", ["parquet", "windows", "webdataset", "jsonl"])
def test_good_samples_are_whole_where_the_manifest_says(kind: str) -> None:
    """A plain reader finds every good sample at its place, and no field of it belongs to another."""
    count = 0
    for record, row in good_rows(kind):
        assert set(content.check_row(row).values()) - {None} == {record.id}
        count += 1
    assert count == history_of(kind)["counts"]["state"]["good"] > 0
