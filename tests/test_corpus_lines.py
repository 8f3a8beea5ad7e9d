"""Corpora of lines of JSON."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from badbatch.harness.corpus import content, gzipped
from badbatch.harness.corpus.base import SampleRecord, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.errors import UserError
from making import Made, kind_of, made

pytest.importorskip("pyarrow")
pytest.importorskip("faker")

FORMATS = ("jsonl", "jsonl.gz")


def lines_of(corpus: Made, path: str) -> list[bytes]:
    """The lines of a file, of whatever is left of it."""
    data = corpus.files[path].data
    assert data is not None
    return (gzipped.decompress(data)[0] if path.endswith(".gz") else data).split(b"\n")


def line_of(corpus: Made, record: SampleRecord) -> bytes:
    assert record.row is not None
    return lines_of(corpus, record.path)[record.row]


def struck(corpus: Made) -> list[SampleRecord]:
    return [record for record in corpus.records if record.fault]


# A clean corpus


@pytest.mark.parametrize("storage", FORMATS)
def test_a_clean_corpus_is_read_by_json(tmp_path: Path, storage: str) -> None:
    """Line by line, each object's fields are its own, and digest and length are the line's."""
    corpus = made("jsonl", 50, format=storage)
    folder = corpus.write(tmp_path)
    seen = []
    for file in sorted(folder.iterdir()):
        opened: Any = gzip.open if storage == "jsonl.gz" else open
        with opened(file, "rt", encoding="utf-8") as text:
            for line in text:
                record = corpus.records[len(seen)]
                assert hashlib.sha256(line.rstrip("\n").encode()).hexdigest() == record.sha256 == record.content
                row = json.loads(line)
                assert content.check_row(row) == dict.fromkeys(content.ROW_FIELDS, row["id"])
                seen.append(row["id"])
    assert seen == list(range(50))


def test_a_clean_corpus_is_read_by_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``datasets`` streams the plain and the gzipped files, legal oddities included."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets")
    for storage in FORMATS:
        odd = ["empty-text", "carriage-return", "escaped-text", "unterminated-last-line"]
        folder = made("jsonl", 50, odd=odd, format=storage).write(tmp_path / storage)
        files = str(folder / f"*.{storage}")
        streamed = datasets.load_dataset("json", data_files=files, split="train", streaming=True)
        rows = list(streamed)
        assert [row["id"] for row in rows] == list(range(50))
        assert all(set(content.check_row(row).values()) - {None} == {row["id"]} for row in rows)


@pytest.mark.parametrize("storage", FORMATS)
def test_the_same_recipe_gives_the_same_bytes_in_any_order(storage: str) -> None:
    """A file made separately is the same as among the others."""
    quick = [name for name, cls in disk_faults("jsonl").items() if not cls.odd and name != "long-line"]
    faults = [name for name in quick if disk_faults()[name].fits("jsonl", storage)]
    whole = made("jsonl", 100, faults=faults, damage=0.5, oddities=0.3, format=storage, seed=3, per_file=10)
    kind = kind_of("jsonl")
    for chunk in reversed(list(kind.chunks(whole.recipe))):
        for file in kind.make(whole.recipe, chunk):
            assert whole.files[file.path] == file


# Damage


@pytest.mark.parametrize("storage", FORMATS)
def test_every_fault_of_lines_occurs_by_default(storage: str) -> None:
    """In a large enough corpus each fault that fits strikes, and what is not good has its fault named."""
    corpus = made("jsonl", 400, damage=0.5, oddities=0.3, format=storage, seed=1, per_file=8)
    in_files = {file.fault["fault"] for file in corpus.files.values() if file.fault}
    for name, cls in disk_faults("jsonl").items():
        fits = cls.fits("jsonl", storage)
        assert (bool(corpus.by_fault(name)) or name in in_files) is fits, name
    for record in corpus.records:
        assert record.state is State.GOOD or record.fault
        assert record.fault or set(record.said.values()) == {"whole"}
    sizes = sorted(record.length or 0 for record in corpus.by_fault("long-line"))
    assert sizes[-1] == 3_000_000 and set(sizes) <= {3_000_000, 70_000}
    assert sum(len(file.data or b"") for file in corpus.files.values()) < 10_000_000
    undamaged = kind_of("jsonl").undamaged(corpus.recipe, 17)
    assert hashlib.sha256(undamaged).hexdigest() == corpus.records[17].content


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize(
    ("fault", "holds"),
    [
        (("cut-line", {"keep": 0.5, "newline": True}), lambda line: not line.endswith(b"}")),
        ("invalid-utf8", lambda line: line.decode("utf-8", "replace").count("\ufffd")),
        ("control-character", lambda line: any(byte < 32 for byte in line)),
        (("nul-in-line", {"whole": False}), lambda line: line.count(0) == 1),
        (("nul-in-line", {"whole": True}), lambda line: line and not line.strip(b"\0")),
    ],
)
def test_a_damaged_line_costs_only_itself(storage: str, fault: Any, holds: Any) -> None:
    """The lines with a fault contain the damage and no reader has them whole; all others are good."""
    corpus = made("jsonl", 30, faults=[fault], format=storage)
    assert len(struck(corpus)) == 10
    for record in corpus.records:
        assert bool(holds(line_of(corpus, record))) is bool(record.fault)
        assert (record.state is State.GOOD) is (record.fault is None)
        if record.fault:
            assert record.said["json"].startswith("raises ")
            assert record.took_hold and record.sha256 != record.content


@pytest.mark.parametrize("code", [1, 9, 31])
def test_a_control_character_is_damage(code: int) -> None:
    """JSON forbids every bare control character, and both readers refuse it."""
    corpus = made("jsonl", 9, faults=[("control-character", {"code": code})])
    assert {record.state for record in struck(corpus)} == {State.DAMAGED}


@pytest.mark.parametrize("how", ["latin-1", "lone-continuation", "cut-letter", "surrogate", "overlong"])
def test_invalid_utf8_takes_every_form(how: str) -> None:
    """No form decodes as UTF-8."""
    corpus = made("jsonl", 9, faults=[("invalid-utf8", {"how": how})])
    for record in struck(corpus):
        with pytest.raises(UnicodeDecodeError):
            line_of(corpus, record).decode()


def test_a_line_cut_with_its_newline_spoils_the_next_one() -> None:
    """Both samples are in one line that no reader accepts, and both records name the fault."""
    corpus = made("jsonl", 20, faults=[("cut-line", {"newline": False})], damage=0.05)
    spoilt = struck(corpus)
    assert len(spoilt) == 2 and spoilt[0].id + 1 == spoilt[1].id
    assert {record.state for record in spoilt} == {State.DAMAGED}
    assert spoilt[0].fault == spoilt[1].fault
    assert len(lines_of(corpus, spoilt[0].path)) == 20
    assert sum(record.state is State.GOOD for record in corpus.records) == 18


def test_a_byte_order_mark_is_contested() -> None:
    """Parsers may skip it or refuse it (RFC 8259, 8.1), so the readers disagree."""
    corpus = made("jsonl", 9, faults=["byte-order-mark"])
    for record in struck(corpus):
        assert record.state is State.CONTESTED
        assert line_of(corpus, record).startswith(b"\xef\xbb\xbf{")


def test_a_long_line_is_legal_and_contested() -> None:
    """Python reads it whole; a reader that works in blocks of a megabyte refuses it."""
    corpus = made("jsonl", 9, faults=[("long-line", {"megabytes": 5})])
    for record in struck(corpus):
        assert record.length == 5_000_000
        assert record.said["json"] == "whole"
        assert record.state is State.CONTESTED


def test_a_line_that_is_not_too_long_is_recorded_as_good() -> None:
    """A fault that every reader accepts is kept in the record and is not damage."""
    corpus = made("jsonl", 9, faults=[("long-line", {"megabytes": 0.01})])
    assert len(struck(corpus)) == 3
    assert all(record.state is State.GOOD and record.took_hold for record in struck(corpus))


@pytest.mark.parametrize("storage", FORMATS)
def test_a_cut_file_loses_its_last_lines_without_a_word(storage: str) -> None:
    """Lines before the cut are good, the cut one is damaged, those after it are missing."""
    corpus = made("jsonl", 40, faults=[("cut-file", {"keep": 0.5})], damage=0.2, per_file=20, format=storage)
    (path,) = {record.path for record in struck(corpus)}
    states = [record.state for record in corpus.records if record.path == path]
    first = next(place for place, state in enumerate(states) if state is not State.GOOD)
    assert states == [State.GOOD] * first + [State.DAMAGED] + [State.MISSING] * (19 - first)


@pytest.mark.parametrize("storage", FORMATS)
def test_an_empty_file_loses_its_lines_without_a_word(storage: str) -> None:
    """No reader minds a file without bytes, so its samples are missing."""
    corpus = made("jsonl", 40, faults=["empty-file"], damage=0.2, per_file=20, format=storage)
    assert len(struck(corpus)) == 20
    assert {record.state for record in struck(corpus)} == {State.MISSING}


def test_a_cut_gzip_stream_is_contested_where_buffers_differ() -> None:
    """What is before the cut is read by one reader or both; after it every line is damaged."""
    corpus = made("jsonl", 400, faults=[("cut-gzip", {"keep": 0.9})], damage=0.5, per_file=200, format="jsonl.gz")
    (path,) = {record.path for record in struck(corpus)}
    order = [State.GOOD, State.CONTESTED, State.DAMAGED]
    states = [record.state for record in corpus.records if record.path == path]
    assert states == sorted(states, key=order.index)
    assert states[0] is not State.DAMAGED and states[-1] is State.DAMAGED


# Oddities


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize(
    ("oddity", "holds"),
    [
        ("empty-text", lambda line: b'"text":""' in line),
        (("empty-list", {"inner": False}), lambda line: b'"spans":[]' in line),
        ("carriage-return", lambda line: line.endswith(b"}\r")),
        ("escaped-text", lambda line: line.isascii() and b'", "' in line),
    ],
)
def test_an_odd_line_is_good(storage: str, oddity: Any, holds: Any) -> None:
    """Every reader has the odd lines whole."""
    corpus = made("jsonl", 30, odd=[oddity], format=storage)
    assert corpus.states() == {State.GOOD}
    odd = [record for record in corpus.records if record.oddity]
    assert len(odd) == 10
    assert all(holds(line_of(corpus, record)) for record in odd)


@pytest.mark.parametrize("storage", FORMATS)
def test_a_last_line_without_newline_and_a_file_without_lines_are_good(storage: str) -> None:
    """Neither costs a sample."""
    corpus = made("jsonl", 40, odd=["unterminated-last-line"], format=storage)
    assert corpus.states() == {State.GOOD}
    ends = [lines_of(corpus, path)[-1] for path, file in corpus.files.items() if file.fault]
    assert ends and all(end.endswith(b"}") for end in ends)
    empty = made("jsonl", 40, odd=["no-rows"], format=storage)
    assert empty.states() == {State.GOOD}
    assert [lines_of(empty, path) for path in empty.files if "no-rows" in path] == [[b""]]


@pytest.mark.parametrize(
    "wrong",
    [
        ("cut-line", {"keep": 0}),
        ("invalid-utf8", {"how": "utf-7"}),
        ("control-character", {"code": 10}),
        ("long-line", {"megabytes": -1}),
        ("cut-file", {"keep": 1}),
    ],
)
def test_bad_parameters_are_refused(wrong: Any) -> None:
    """A parameter that a fault cannot have is the user's error."""
    with pytest.raises(UserError, match="cannot have the parameters"):
        made("jsonl", faults=[wrong])


def test_gzip_bytes_depend_only_on_the_content() -> None:
    """The stream contains no time, and a truncated one can be read up to the cut."""
    data = b"0123456789" * 5000
    assert gzipped.compress(data) == gzipped.compress(data)
    assert gzipped.decompress(gzipped.compress(data)) == (data, None)
    found, error = gzipped.decompress(gzipped.compress(data)[:-20])
    assert data.startswith(found) and isinstance(error, EOFError)
    assert gzipped.decompress(b"") == (b"", None)
    assert gzip.GzipFile(fileobj=io.BytesIO(gzipped.compress(data))).read() == data


@pytest.mark.parametrize("storage", FORMATS)
def test_lines_after_a_lost_newline_are_found_where_they_lie(storage: str) -> None:
    """Every good sample is in the line that its record names, also after a line that ran into the next."""
    corpus = made("jsonl", 60, faults=[("cut-line", {"newline": False})], format=storage)
    good = [record for record in corpus.records if record.state is State.GOOD]
    assert [json.loads(line_of(corpus, record))["id"] for record in good] == [record.id for record in good]
    assert any(record.row != record.id % 20 for record in good)
