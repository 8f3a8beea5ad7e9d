"""Corpora of time windows, in each storage format."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from badbatch.harness.corpus import content
from badbatch.harness.corpus.base import Choice, Recipe, SampleRecord, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.errors import UserError
from hypothesis import given, settings
from hypothesis import strategies as st
from making import Made, kind_of, made

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FORMATS = ("parquet", "arrow", "npz")
IDS = st.integers(0, 2**32 - 1)
unhurried = settings(deadline=None, max_examples=60)


def stored(corpus: Made, record: SampleRecord) -> dict[str, Any]:
    """The sample's row as it is in its file, read without any check."""
    data = corpus.files[record.path].data
    assert data is not None and record.row is not None
    if record.path.endswith(".npz"):
        with np.load(io.BytesIO(data), allow_pickle=True) as archive:
            return {name: archive[name] for name in archive.files}
    table = pq.read_table(io.BytesIO(data)) if record.path.endswith(".parquet") else pa.ipc.open_file(data).read_all()
    row: dict[str, Any] = table.to_pylist()[record.row]
    return row


# What a window contains


@unhurried
@given(IDS, st.integers(16, 300))
def test_a_window_says_whose_it_is(sample: int, length: int) -> None:
    """Values of any length give their id back, also in half precision."""
    window = content.window(sample, length)
    assert window.dtype == np.float32 and window.shape == (length,)
    assert content.id_of_window(window) == sample
    assert content.id_of_window(window.astype(np.float16)) == sample
    assert content.id_of_window(list(map(float, window))) == sample


@unhurried
@given(IDS, st.integers(0, 200), st.data())
def test_a_window_of_the_wrong_length_is_unreadable(sample: int, length: int, data: st.DataObject) -> None:
    """Values that were cut, lengthened, repeated or emptied belong to no sample."""
    whole = content.window(sample)
    if length != content.WINDOW:
        assert content.id_of_window(np.resize(whole, length)) == content.UNREADABLE


@unhurried
@given(IDS, IDS, st.integers(1, content.WINDOW - 1))
def test_a_window_spliced_from_two_is_unreadable(sample: int, other: int, cut: int) -> None:
    """Two samples' values in one window are distinguished from either, wherever they join."""
    spliced = np.concatenate([content.window(sample)[:cut], content.window(other)[cut:]])
    found = content.id_of_window(spliced)
    if found != content.UNREADABLE:  # then the values of the other part happen to equal those of this sample
        assert found in (sample, other)
        assert np.abs(spliced - content.window(found)).max() <= 1 / 16


@unhurried
@given(IDS, st.integers(0, content.WINDOW - 1))
def test_nan_hides_no_id_and_infinity_and_null_make_it_unreadable(sample: int, place: int) -> None:
    """One NaN is legal and skipped; infinity and null in its place are not."""
    values = content.window(sample).tolist()
    values[place] = math.nan
    assert content.id_of_window(values) == sample
    for wrong in (math.inf, -math.inf, None):
        values[place] = wrong
        assert content.id_of_window(values) == content.UNREADABLE


def test_windows_begin_one_after_the_other() -> None:
    """The start is whole microseconds, a quarter of a second after that of the window before, and gives the id back."""
    assert content.start_us(8) - content.start_us(4) == 1_000_000
    assert content.id_of_start(content.start_us(12345)) == 12345
    assert content.id_of_start(content.start_us(12345) + 1) == content.UNREADABLE


# A clean corpus


def test_clean_parquet_and_arrow_are_read_by_data_set_readers(tmp_path: Path) -> None:
    """pyarrow's data set reader stacks every window of either format into one array."""
    for storage in ("parquet", "arrow"):
        folder = made("windows", 50, format=storage).write(tmp_path / storage)
        table = pytest.importorskip("pyarrow.dataset").dataset(folder, format=storage).to_table()
        values = np.stack(table["values"].to_numpy())
        assert values.shape == (50, content.WINDOW) and values.dtype == np.float32
        assert [content.id_of_window(window) for window in values] == table["id"].to_pylist() == list(range(50))


def test_clean_npz_is_read_by_numpy(tmp_path: Path) -> None:
    """Each window has its own file, which numpy loads without pickle."""
    folder = made("windows", 12, format="npz").write(tmp_path)
    files = sorted(folder.rglob("*.npz"))
    assert len(files) == 12
    for sample, file in enumerate(files):
        with np.load(file, allow_pickle=False) as archive:
            row = {name: archive[name] for name in archive.files}
        assert content.check_row(row) == dict.fromkeys(content.WINDOW_FIELDS, sample)
        assert row["values"].dtype == np.float32


@pytest.mark.parametrize("storage", FORMATS)
def test_the_same_recipe_gives_the_same_bytes(storage: str) -> None:
    """Bytes and records are equal when made again, and differ in their damage with another seed."""
    first, second = (made("windows", 60, damage=0.4, oddities=0.3, format=storage) for _ in range(2))
    assert first.files == second.files
    other = made("windows", 60, damage=0.4, oddities=0.3, format=storage, seed=1)
    assert [record.fault for record in other.records] != [record.fault for record in first.records]


# Damage


@pytest.mark.parametrize("storage", FORMATS)
def test_every_fault_of_windows_occurs_by_default(storage: str) -> None:
    """In a large enough corpus each fault that fits the format strikes, and what is not good has its fault named."""
    corpus = made("windows", 600, damage=0.5, oddities=0.3, format=storage, seed=2, per_file=8)
    for name, cls in disk_faults("windows").items():
        fits = cls.fits("windows", storage)
        assert corpus.holds(name) is fits, name
    for record in corpus.records:
        assert record.state is State.GOOD or record.fault
        assert record.fault or set(record.said.values()) == {"whole"}


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("shape", ["short", "long", "empty", "one-short", "one-long"])
def test_a_ragged_window_is_damaged(storage: str, shape: str) -> None:
    """A window of another length than declared is damaged, and its neighbours are good."""
    corpus = made("windows", 30, faults=[("ragged-values", {"shape": shape})], format=storage)
    lengths = {"short": 32, "long": 128, "empty": 0, "one-short": 63, "one-long": 65}
    for record in corpus.records:
        assert record.state is (State.DAMAGED if record.fault else State.GOOD)
        assert len(stored(corpus, record)["values"]) == (lengths[shape] if record.fault else 64)


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_null_in_a_window_is_damaged(storage: str, place: str) -> None:
    """A null at any place damages only its window."""
    corpus = made("windows", 30, faults=[("null-in-window", {"place": place})], format=storage)
    at = {"first": 0, "middle": 32, "last": 63}[place]
    for record in corpus.records:
        assert record.state is (State.DAMAGED if record.fault else State.GOOD)
        assert (stored(corpus, record)["values"][at] is None) is bool(record.fault)


@pytest.mark.parametrize("storage", FORMATS)
def test_an_infinite_value_is_damaged_and_nan_is_good(storage: str) -> None:
    """The schema forbids infinity and allows NaN."""
    corpus = made("windows", 60, faults=["infinite-value"], odd=["nan-in-window"], format=storage)
    assert len(corpus.by_fault("infinite-value")) == len(corpus.by_fault("nan-in-window")) == 20
    for record in corpus.records:
        values = np.asarray(stored(corpus, record)["values"], dtype=np.float64)
        assert np.isinf(values).any() == bool(record.fault)
        assert np.isnan(values).any() == bool(record.oddity)
        assert record.state is (State.DAMAGED if record.fault else State.GOOD)


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "int16", "string"])
def test_a_wrong_dtype_is_refused_by_strict_readers(storage: str, dtype: str) -> None:
    """The strict reader refuses every window of the file; casting readers may be content, and then it is contested."""
    corpus = made("windows", 30, faults=[("wrong-dtype", {"dtype": dtype})], damage=0.1, format=storage, per_file=5)
    struck = [record for record in corpus.records if record.fault]
    assert len(struck) == (3 if storage == "npz" else 5)
    strict = "numpy" if storage == "npz" else "pyarrow"
    assert all(record.said[strict].startswith("raises declared: values is") for record in struck)
    assert all(record.state is not State.GOOD for record in struck)
    if dtype == "float64":
        assert {record.state for record in struck} == {State.CONTESTED}


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("fault", ["truncated-footer", "empty-file"])
def test_a_file_that_cannot_be_opened_costs_all_its_windows(storage: str, fault: str) -> None:
    """All windows of the struck file are damaged, all others good."""
    corpus = made("windows", 30, faults=[fault], damage=0.1, format=storage, per_file=5)
    struck = {record.path for record in corpus.records if record.fault}
    for record in corpus.records:
        assert record.state is (State.DAMAGED if record.path in struck else State.GOOD)
        assert (record.sha256 is None) is (record.path in struck)


@pytest.mark.parametrize("storage", FORMATS)
def test_cut_and_flipped_data_are_noticed(storage: str) -> None:
    """A group that was cut is refused; flipped bytes are refused where the format has check sums, else contested."""
    cut = made("windows", 30, faults=["cut-row-group"], damage=0.2, format=storage, per_file=8)
    assert {record.state for record in cut.records if record.fault} == {State.DAMAGED}
    flip = ("flipped-page", {"flips": 4, "place": 0.6, "checksums": True})
    flipped = made("windows", 30, faults=[flip], damage=0.2, format=storage, per_file=8)
    states = {record.state for record in flipped.records if record.fault}
    assert states and states <= ({State.DAMAGED} if storage == "npz" else {State.CONTESTED, State.DAMAGED})


@pytest.mark.parametrize(
    "wrong",
    [
        ("ragged-values", {"shape": "round"}),
        ("null-in-window", {"place": "nowhere"}),
        ("infinite-value", {"place": 1.0}),
        ("wrong-dtype", {"dtype": "complex64"}),
    ],
)
def test_bad_parameters_are_refused(wrong: Any) -> None:
    """A parameter that a fault cannot have is the user's error."""
    with pytest.raises(UserError, match="cannot have the parameters"):
        made("windows", faults=[wrong])


def test_a_fault_that_the_format_cannot_have_is_refused() -> None:
    """Row groups do not occur among files of one window."""
    recipe = Recipe("windows", 10, format="npz", odd_faults=(Choice("one-row-group"),))
    with pytest.raises(UserError, match="'one-row-group' does not fit windows as npz"):
        kind_of("windows").check(recipe)
