"""Corpora of rows: what they contain, what each fault does to them, and whether the manifest is correct."""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from badbatch.harness.corpus import content, tablefiles
from badbatch.harness.corpus.base import Choice, Recipe, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.declared import ROWS
from badbatch.harness.corpus.layout import Layout
from badbatch.harness.errors import UserError
from hypothesis import given, settings
from hypothesis import strategies as st
from making import kind_of, made

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("faker")

IDS = st.integers(0, 2**31 - 1)
unhurried = settings(deadline=None, max_examples=60)  # the first text of a seed loads Faker


# What a row contains


@unhurried
@given(IDS)
def test_every_field_of_a_row_says_whose_it_is(sample: int) -> None:
    """Each field by itself gives the id back."""
    assert content.check_row(content.row(3, sample)) == dict.fromkeys(content.ROW_FIELDS, sample)


@unhurried
@given(IDS, IDS, st.sampled_from(content.ROW_FIELDS))
def test_a_field_of_another_sample_is_recognised(sample: int, other: int, field: str) -> None:
    """A row that took one field from another row names both."""
    mixed = {**content.row(3, sample), field: content.row(3, other)[field]}
    assert content.check_row(mixed)[field] == other


@unhurried
@given(IDS, st.sampled_from(["text", "number", "amount", "spans", "id"]), st.data())
def test_a_damaged_field_is_never_read_as_whole(sample: int, field: str, data: st.DataObject) -> None:
    """No changed value is read as that of the same sample."""
    row = content.row(3, sample)
    damaged: dict[str, Any] = {
        "text": row["text"][: data.draw(st.integers(1, len(row["text"]) - 1))],
        "number": row["number"] + data.draw(st.sampled_from([0.5, -0.25, 1 / 4096])),
        "amount": row["amount"] ^ 1 << data.draw(st.integers(0, 30)),
        "spans": row["spans"][:-1],
        "id": sample ^ 1 << data.draw(st.integers(0, 30)),
    }
    assert content.check_row({**row, field: damaged[field]})[field] != sample


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("text", "", None),
        ("number", math.nan, None),
        ("spans", [], None),
        ("text", None, content.UNREADABLE),
        ("number", math.inf, content.UNREADABLE),
        ("amount", None, content.UNREADABLE),
        ("amount", math.nan, content.UNREADABLE),
        ("spans", [None], content.UNREADABLE),
        ("spans", [[320, None, 322]], content.UNREADABLE),
        ("id", None, content.UNREADABLE),
        ("id", True, content.UNREADABLE),
    ],
)
def test_legally_empty_values_say_nothing_and_nulls_say_damaged(field: str, value: Any, says: int | None) -> None:
    """Empty strings, empty lists and NaN belong to nobody; a null is unreadable."""
    assert content.check_row({**content.row(3, 5), field: value})[field] == says


def test_values_are_read_from_tensors_arrays_and_arrow() -> None:
    """A row that passed through numpy, torch's default types or Arrow still gives its id."""
    row = content.row(3, 77)
    arrays = {
        "id": np.int64(77),
        "number": np.float32(row["number"]),
        "amount": np.float64(row["amount"]),
        "text": pa.scalar(row["text"]),
        "spans": [np.array(inner) for inner in row["spans"]],
    }
    assert set(content.check_row(arrays).values()) == {77}


def test_texts_come_in_many_scripts_and_from_the_seed() -> None:
    """Among a hundred texts are Latin, Cyrillic, Arabic, Hebrew, Greek, Indian and East Asian letters; seeds differ."""
    texts = "".join(content.text(1, sample) for sample in range(100))
    for low, high in ((0x41, 0x7A), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F)):
        assert any(low <= ord(letter) <= high for letter in texts), hex(low)
    assert any(0x3040 <= ord(letter) <= 0x9FFF for letter in texts)
    assert content.text(1, 5) != content.text(2, 5)
    assert content.row(1, 5) == content.row(1, 5)


# A clean corpus


def test_a_clean_corpus_is_read_by_the_data_set_reader_of_arrow(tmp_path: Path) -> None:
    """pyarrow's data set reader finds every row once, and every field is the row's own."""
    folder = made("parquet", 50).write(tmp_path)
    dataset = pytest.importorskip("pyarrow.dataset").dataset(folder)
    rows = dataset.to_table().to_pylist()
    assert {name: str(tablefiles.with_nulls(kind, True)) for name, kind in zip(dataset.schema.names, dataset.schema.types)} == {
        field.name: str(field.type) for field in ROWS.schema
    }
    assert sorted(row["id"] for row in rows) == list(range(50))
    assert all(set(content.check_row(row).values()) == {row["id"]} for row in rows)


def test_a_clean_corpus_is_read_by_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``datasets`` loads the folder, whole and streaming."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets")
    folder = made("parquet", 50).write(tmp_path / "corpus")
    files = str(folder / "*.parquet")
    loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["id"][:] == list(range(50))
    streamed = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    assert all(set(content.check_row(row).values()) == {sample} for sample, row in enumerate(streamed))


def test_rows_lie_where_the_manifest_says() -> None:
    """File, row and row group of each record lead to its row."""
    corpus = made("parquet", 50)
    assert sorted(corpus.files) == [f"data/part-{number:05d}.parquet" for number in range(3)]
    for record in corpus.records:
        file = pq.ParquetFile(io.BytesIO(corpus.files[record.path].data))
        assert file.num_row_groups > 1
        before = sum(file.metadata.row_group(group).num_rows for group in range(record.row_group))
        row = file.read_row_group(record.row_group).to_pylist()[record.row - before]
        assert row["id"] == record.id
        assert record.sha256 == record.content == hashlib.sha256(content.canonical(row)).hexdigest()
        assert record.said["pyarrow"] == "whole"


def test_undamaged_bytes_are_made_again() -> None:
    """The kind gives a struck sample's bytes as they were, and their digest is the recorded one."""
    corpus = made("parquet", faults=["null-row", "truncated-footer"], odd=["empty-text", "empty-list"])
    for record in corpus.records:
        again = kind_of("parquet").undamaged(corpus.recipe, record.id)
        assert hashlib.sha256(again).hexdigest() == record.content


def test_the_same_recipe_gives_the_same_bytes_in_any_order() -> None:
    """A chunk made separately, and twice, is the same as among the others."""
    recipe = Recipe("parquet", 200, seed=4, damage=0.3, oddities=0.3, per_file=20)
    kind = kind_of("parquet")
    whole = made("parquet", 200, seed=4, damage=0.3, oddities=0.3)
    layout = Layout(recipe, "parquet", 20)
    for chunk in reversed(list(layout.chunks(20))):
        for file in kind.make(recipe, chunk):
            assert whole.files[file.path] == file


# Damage


def rows_of(corpus: Any, record: Any) -> dict[str, Any]:
    row: dict[str, Any] = pq.read_table(io.BytesIO(corpus.files[record.path].data)).to_pylist()[record.row]
    return row


def test_every_fault_of_rows_occurs_by_default_and_every_damaged_sample_is_named() -> None:
    """In a large enough corpus each fault that fits strikes, and what is not good has its fault named."""
    corpus = made("parquet", 1500, damage=0.4, oddities=0.2, seed=5)
    for name, cls in disk_faults("parquet").items():
        assert corpus.holds(name), name
        assert cls.__doc__
    for record in corpus.records:
        assert (record.state is State.GOOD) or record.fault, record
        if record.fault is None:
            assert set(record.said.values()) == {"whole"}
    struck = sum(record.fault is not None for record in corpus.records)
    assert 0.2 < struck / 1500 < 0.6


@pytest.mark.parametrize(
    ("fault", "holds"),
    [
        ("null-row", lambda row: set(row.values()) == {None}),
        ("null-integer", lambda row: row["amount"] is None and row["text"]),
        (("null-in-list", {"depth": "column"}), lambda row: row["spans"] is None),
        (("null-in-list", {"depth": "list", "place": "first"}), lambda row: row["spans"][0] is None),
        (("null-in-list", {"depth": "list", "place": "last"}), lambda row: row["spans"][-1] is None),
        (
            ("null-in-list", {"depth": "item", "place": "middle"}),
            lambda row: any(None in s[1:-1] for s in row["spans"]),
        ),
        (("null-in-list", {"depth": "item", "place": "last"}), lambda row: row["spans"][-1][-1] is None),
    ],
)
def test_a_null_damages_only_its_row(fault: Any, holds: Any) -> None:
    """The rows with a fault contain the null and are damaged; all others are good."""
    corpus = made("parquet", faults=[fault])
    struck = [record for record in corpus.records if record.fault]
    assert len(struck) == 20
    for record in corpus.records:
        assert record.state is (State.DAMAGED if record.fault else State.GOOD)
    assert all(holds(rows_of(corpus, record)) for record in struck)
    assert all(record.sha256 != record.content and record.took_hold for record in struck)


def nullable_columns(data: bytes) -> set[str]:
    """The columns of a Parquet file in which a null may be, at any level, as its own schema says."""
    schema = pq.ParquetFile(io.BytesIO(data)).schema
    columns = [schema.column(number) for number in range(len(schema))]
    # A required column needs only one definition level for each list around it, which may be empty.
    return {c.path.partition(".")[0] for c in columns if c.max_definition_level > c.max_repetition_level}


@pytest.mark.parametrize("kind", ["parquet", "windows"])
def test_no_column_of_a_clean_corpus_may_be_null(kind: str) -> None:
    """The stored schema forbids what the corpus calls damage: a null in a nullable column would be data."""
    assert [nullable_columns(file.data) for file in made(kind, 50).files.values()] == [set()] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "fault", "columns"),
    [
        ("parquet", "null-integer", {"amount"}),
        ("parquet", ("null-in-list", {"depth": "item"}), {"spans"}),
        ("parquet", ("null-in-list", {"depth": "list"}), {"spans"}),
        ("parquet", "null-row", set(content.ROW_FIELDS)),
        ("windows", "null-in-window", {"values"}),
    ],
)
def test_only_the_file_with_a_null_lets_that_column_be_null(kind: str, fault: Any, columns: set[str]) -> None:
    """The struck file was written with another schema than the rest: that is how a null comes into such a set."""
    name = fault if isinstance(fault, str) else fault[0]
    choice = Choice(name, parameters={} if isinstance(fault, str) else fault[1], at=25)
    recipe = Recipe(kind, 60, damage=0.0, faults=(choice,), per_file=20)
    files = [file for chunk in kind_of(kind).chunks(recipe) for file in kind_of(kind).make(recipe, chunk)]
    assert [nullable_columns(file.data or b"") for file in files] == [set(), columns, set()]
    assert [record.id for file in files for record in file.records if record.state is State.DAMAGED] == [25]


@pytest.mark.parametrize(("fault", "column"), [("changed-type", "amount"), ("missing-column", "amount")])
def test_a_file_of_another_schema_differs_in_nothing_else(fault: str, column: str) -> None:
    """A changed type or a missing column does not also make a column nullable."""
    corpus = made("parquet", faults=[(fault, {"column": column})])
    assert corpus.holds(fault)
    assert all(nullable_columns(file.data or b"") == set() for file in corpus.files.values())


def test_null_in_list_takes_its_turns_at_every_level_and_place() -> None:
    """Column, first, middle and last list, first, middle and last item all occur."""
    corpus = made("parquet", faults=["null-in-list"])
    assert len({json.dumps(dict(record.fault or {})) for record in corpus.records if record.fault}) == 7


def test_a_duplicate_id_is_contested_since_readers_are_content() -> None:
    """The id is the neighbour's, the other fields the row's own, and no reader refuses."""
    corpus = made("parquet", faults=["duplicate-id"])
    for record in corpus.by_fault("duplicate-id"):
        assert record.state is State.CONTESTED
        row = rows_of(corpus, record)
        assert abs(row.pop("id") - record.id) == 1
        assert set(content.check_row(row).values()) == {record.id}


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ("truncated-footer", State.DAMAGED),
        ("empty-file", State.DAMAGED),
        (("missing-column", {"column": "text"}), State.DAMAGED),
        (("changed-type", {"column": "amount", "type": "string"}), State.CONTESTED),
        (("changed-type", {"column": "number", "type": "float32"}), State.CONTESTED),
        (("changed-type", {"column": "spans", "type": "string"}), State.DAMAGED),
    ],
)
def test_a_fault_of_a_file_costs_all_its_rows_and_no_others(fault: Any, state: State) -> None:
    """Where every reader refuses the file its rows are damaged; where one can cast they are contested."""
    corpus = made("parquet", faults=[fault], damage=0.1)
    struck = {record.path for record in corpus.records if record.fault}
    assert len(struck) == 1
    for record in corpus.records:
        assert record.state is (state if record.path in struck else State.GOOD), record
        assert record.took_hold is (True if record.path in struck else None)


def test_a_cut_row_group_costs_only_its_rows() -> None:
    """The rows of the last group are damaged, those of the groups before it good and without a fault."""
    corpus = made("parquet", faults=["cut-row-group"], damage=0.1)
    struck = [record for record in corpus.records if record.fault]
    assert {record.row_group for record in struck} == {3}
    assert {record.state for record in struck} == {State.DAMAGED}
    assert len(struck) == 5


@pytest.mark.parametrize("checksums", [True, False])
def test_flipped_bytes_are_refused_where_check_sums_are_kept(checksums: bool) -> None:
    """With page check sums the strict reader refuses the group; the rest of the file is good; bytes really differ."""
    corpus = made("parquet", faults=[("flipped-page", {"checksums": checksums, "group": 1, "place": 0.6})], damage=0.1)
    struck = [record for record in corpus.records if record.fault]
    path = struck[0].path
    assert {record.row_group for record in struck} == {1}
    assert all(record.state in (State.CONTESTED, State.DAMAGED) for record in struck)
    if checksums:
        assert all("checksum" in record.said["pyarrow"].lower() for record in struck)
    clean = made("parquet")
    assert corpus.files[path].data != clean.files[path].data


def test_a_fault_that_changed_nothing_is_recorded_so() -> None:
    """A duplicate id in files of one row has no effect: the sample is good, and the record says why."""
    corpus = made("parquet", 9, faults=["duplicate-id"], per_file=1)
    struck = corpus.by_fault("duplicate-id")
    assert len(struck) == 3
    assert all(record.state is State.GOOD and record.took_hold is False for record in struck)


def test_duckdb_gives_a_second_opinion() -> None:
    """If DuckDB is installed it reads group by group, and agrees on what is whole."""
    pytest.importorskip("duckdb")
    corpus = made("parquet", faults=["cut-row-group", "null-row"], odd=["nan-number", "zero-row-group"])
    assert all("duckdb" in record.said for record in corpus.records)
    assert all(record.said["duckdb"] == "whole" for record in corpus.records if record.state is State.GOOD)
    assert all(record.said["duckdb"] != "whole" for record in corpus.records if record.state is State.DAMAGED)


# Oddities


@pytest.mark.parametrize(
    ("oddity", "holds"),
    [
        ("empty-text", lambda row: row["text"] == ""),
        (("empty-list", {"inner": False}), lambda row: row["spans"] == []),
        (("empty-list", {"inner": True}), lambda row: row["spans"][-1] == [] and row["spans"][0]),
        ("nan-number", lambda row: math.isnan(row["number"])),
    ],
)
def test_an_odd_row_is_good(oddity: Any, holds: Any) -> None:
    """Empty and NaN values are values: every reader has the row whole."""
    corpus = made("parquet", odd=[oddity])
    odd = [record for record in corpus.records if record.oddity]
    assert len(odd) == 20
    assert corpus.states() == {State.GOOD}
    for record in odd:
        row = rows_of(corpus, record)
        assert holds(row)
        assert {record.id, None} >= set(content.check_row(row).values())


@pytest.mark.parametrize("oddity", ["zero-row-group", "one-row-group", "no-rows"])
def test_an_odd_file_is_good(oddity: str) -> None:
    """Groups without rows, one group for all, and a file without rows cost no sample."""
    corpus = made("parquet", odd=[oddity])
    assert corpus.states() == {State.GOOD}
    odd = [file for file in corpus.files.values() if file.fault]
    files = {file.path: pq.ParquetFile(io.BytesIO(file.data)).metadata for file in odd if file.data is not None}
    groups = {path: [meta.row_group(g).num_rows for g in range(meta.num_row_groups)] for path, meta in files.items()}
    if oddity == "zero-row-group":
        assert all(0 in sizes and sum(sizes) == 20 for sizes in groups.values())
    elif oddity == "one-row-group":
        assert all(sizes == [20] for sizes in groups.values())
    else:
        assert [sum(sizes) for path, sizes in groups.items() if path.endswith("-no-rows.parquet")] == [0]


# Choices


@pytest.mark.parametrize("kind", ["parquet", "windows", "webdataset", "jsonl"])
def test_every_fault_of_these_kinds_goes_through_json_and_checks_its_parameters(kind: str) -> None:
    """What is drawn for a unit survives JSON, is printable, and says what it is in its first line."""
    from badbatch.harness.faults.base import from_json

    for name, cls in disk_faults(kind).items():
        for turn in range(12):
            fault = cls.turn(turn, random.Random(turn))
            assert from_json(json.loads(json.dumps(fault.to_json()))) == fault
            assert fault.kind == name
            assert repr(fault)
        assert cls.family
        assert (cls.effect.value == "legal") is cls.odd


@pytest.mark.parametrize(
    "wrong",
    [
        ("null-in-list", {"place": "everywhere"}),
        ("missing-column", {"column": "colour"}),
        ("changed-type", {"type": "blob"}),
        ("truncated-footer", {"keep": 1.0}),
        ("flipped-page", {"flips": 0}),
        ("cut-row-group", {"keep": -1}),
        ("zero-row-group", {"place": "second"}),
    ],
)
def test_bad_parameters_are_refused(wrong: Any) -> None:
    """A parameter that a fault cannot have is the user's error, in one line."""
    with pytest.raises(UserError, match="cannot have the parameters"):
        made("parquet", faults=[wrong])


def test_a_fault_of_another_kind_is_refused_with_the_nearest_name() -> None:
    """The message says that the fault does not fit, and which one is near."""
    recipe = Recipe("parquet", 10, faults=(Choice("nul-in-line"),))
    with pytest.raises(UserError, match="'nul-in-line' does not fit parquet as parquet; did you mean"):
        kind_of("parquet").check(recipe)


@unhurried
@given(st.integers(1, 400), st.integers(1, 50), st.floats(0, 1), st.integers(0, 9))
def test_the_drawn_damage_is_close_to_the_requested_damage(samples: int, per_file: int, damage: float, seed: int) -> None:
    """Damaged samples and the samples of damaged files together are close to the requested share."""
    layout = Layout(Recipe("parquet", samples, seed=seed, damage=damage, per_file=per_file), "parquet", per_file)
    struck = sum(
        layout.of_sample(sample) is not None or layout.of_file(sample // per_file) is not None
        for sample in range(samples)
    )
    assert [sample for file in range(layout.files) for sample in layout.ids(file)] == list(range(samples))
    assert struck <= damage * samples + per_file + 1
    if damage == 0:
        assert struck == 0
