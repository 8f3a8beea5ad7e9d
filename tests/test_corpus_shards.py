"""Corpora of tar shards."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from badbatch.harness.corpus import content, gzipped, tarfiles
from badbatch.harness.corpus.base import Recipe, SampleRecord, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.damage.pictures import PictureFault
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.truth import with_pillow
from badbatch.harness.errors import UserError
from making import Made, kind_of, made

pytest.importorskip("PIL")
pytest.importorskip("faker")

FORMATS = ("tar", "tar.gz")


def tar_of(corpus: Made, path: str) -> bytes:
    """The shard's tar, of whatever is left of it."""
    data = corpus.files[path].data
    assert data is not None
    return gzipped.decompress(data)[0] if path.endswith(".gz") else data


def names_in(corpus: Made, path: str) -> list[str]:
    """The names of all members of a whole shard, in order."""
    with tarfile.open(fileobj=io.BytesIO(tar_of(corpus, path))) as archive:
        return archive.getnames()


def struck(corpus: Made) -> list[SampleRecord]:
    return [record for record in corpus.records if record.fault]


# A clean corpus


@pytest.mark.parametrize("storage", FORMATS)
def test_a_clean_corpus_is_read_by_tarfile(tmp_path: Path, storage: str) -> None:
    """Plain tarfile finds four members for each sample, side by side, and all belong to it."""
    folder = made("webdataset", 25, per_file=10, format=storage).write(tmp_path)
    seen = []
    for shard in sorted(folder.iterdir()):
        with tarfile.open(shard) as archive:
            members = [(info.name, archive.extractfile(info).read()) for info in archive]  # type: ignore[union-attr]
        for start in range(0, len(members), 4):
            keys = {name.split(".")[0] for name, _ in members[start : start + 4]}
            fields = {name.split(".")[1]: data for name, data in members[start : start + 4]}
            assert len(keys) == 1 and sorted(fields) == ["cls", "jpg", "json", "txt"]
            (key,) = keys
            found = content.check_row({"__key__": key, **fields})
            assert set(found.values()) == {int(key)}
            seen.append(int(key))
    assert seen == list(range(25))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the library leaves shards to the collector
@pytest.mark.parametrize("storage", FORMATS)
def test_a_clean_corpus_is_read_by_the_webdataset_library(tmp_path: Path, storage: str) -> None:
    """The library decodes every sample, odd names, folders and pictures included, and every id is there once."""
    wds = pytest.importorskip("webdataset")
    odd = ["long-key", "non-ascii-key", "key-in-folder", "png-member", "empty-text"]
    corpus = made("webdataset", 40, odd=odd, oddities=0.5, per_file=10, format=storage)
    assert corpus.states() == {State.GOOD}
    folder = corpus.write(tmp_path)
    shards = [str(shard) for shard in sorted(folder.iterdir())]
    dataset = (
        wds.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("__key__", "jpg;png", "txt", "json", "cls")
    )
    seen = []
    for key, picture, text, data, label in dataset:
        ids = content.check_row({"__key__": key, "txt": text, "json": data, "cls": label})
        assert set(ids.values()) - {None} == {content.id_of_key(key)}
        assert picture.size == (64, 64)
        seen.append(content.id_of_key(key))
    del dataset
    gc.collect()
    assert seen == list(range(40))


def test_the_picture_of_a_sample_carries_its_id() -> None:
    """The mark in each picture, as JPEG and as PNG, matches its key."""
    from badbatch.harness.corpus.studio import picture_bytes

    corpus = made("webdataset", 10, odd=["png-member"], size=(128, 128))
    with tarfile.open(fileobj=io.BytesIO(tar_of(corpus, "data/shard-000000.tar"))) as archive:
        for record in corpus.records:
            name = next(name for name in record.members if name.endswith((".jpg", ".png")))
            data = archive.extractfile(name).read()  # type: ignore[union-attr]
            plain = picture_bytes(corpus.recipe.seed, record.id, (128, 128), 10)
            assert (data == plain) is name.endswith(".jpg")
            assert pixels(data) == pixels(plain)


def pixels(data: bytes) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        return picture.convert("RGB").tobytes()


def test_digests_are_those_of_the_members() -> None:
    """Length and digest are of the members joined in order, and the undamaged bytes are made again."""
    corpus = made("webdataset", 20, odd=["empty-text", "long-key"], faults=["missing-member"])
    with tarfile.open(fileobj=io.BytesIO(tar_of(corpus, "data/shard-000000.tar"))) as archive:
        for record in corpus.records:
            joined = b"".join(archive.extractfile(name).read() for name in record.members)  # type: ignore[union-attr]
            assert hashlib.sha256(joined).hexdigest() == record.sha256 and len(joined) == record.length
            again = kind_of("webdataset").undamaged(corpus.recipe, record.id)
            assert hashlib.sha256(again).hexdigest() == record.content
            assert (record.sha256 == record.content) is (record.fault is None)


@pytest.mark.parametrize("storage", FORMATS)
def test_the_same_recipe_gives_the_same_bytes_in_any_order(storage: str) -> None:
    """A shard made separately is the same as among the others."""
    whole = made("webdataset", 60, damage=0.5, oddities=0.3, format=storage, seed=3, per_file=10)
    kind = kind_of("webdataset")
    for chunk in reversed(list(kind.chunks(whole.recipe))):
        for file in kind.make(whole.recipe, chunk):
            assert whole.files[file.path] == file


@pytest.mark.parametrize(("kind", "storage", "samples"), [("webdataset", "tar.gz", 250), ("windows", "npz", 450)])
def test_two_processes_make_what_one_makes(tmp_path: Path, kind: str, storage: str, samples: int) -> None:
    """Every byte of the corpus, manifests included, is the same for one job and two."""
    pytest.importorskip("pyarrow")
    recipe = Recipe(kind, samples, seed=2, damage=0.3, oddities=0.2, format=storage, size=(16, 16), per_file=25)
    assert len(list(kind_of(kind).chunks(recipe))) > 1
    for jobs in (1, 2):
        make(str(tmp_path / str(jobs)), recipe, jobs=jobs)
    one, two = (
        {
            file.relative_to(tmp_path / jobs): file.read_bytes()
            for file in (tmp_path / jobs).rglob("*")
            if file.is_file()
        }
        for jobs in ("1", "2")
    )
    assert one == two


# Damage


@pytest.mark.parametrize("storage", FORMATS)
def test_every_fault_of_shards_occurs_by_default(storage: str) -> None:
    """In a large enough corpus each fault that fits strikes, and what is not good has its fault named."""
    corpus = made("webdataset", 500, damage=0.6, oddities=0.3, format=storage, seed=1, per_file=5, size=(16, 16))
    for name, cls in disk_faults("webdataset").items():
        fits = cls.fits("webdataset", storage) and not cls.by_name
        assert corpus.holds(name) is fits, name
    for record in corpus.records:
        assert record.state is State.GOOD or record.fault
        assert record.fault or set(record.said.values()) == {"whole"}


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("at", ["header", "member", "between-members", "boundary"])
def test_a_cut_shard_costs_what_follows_the_cut(storage: str, at: str) -> None:
    """Samples before the cut are good, the cut one is damaged, and none after it is good."""
    corpus = made(
        "webdataset", 30, faults=[("cut-shard", {"at": at, "place": 0.5})], damage=0.3, per_file=10, format=storage
    )
    (path,) = {record.path for record in struck(corpus)}
    states = [record.state for record in corpus.records if record.path == path]
    first = next(place for place, state in enumerate(states) if state is not State.GOOD)
    assert 0 < first < 9
    assert states[first] is (State.MISSING if at == "boundary" else State.DAMAGED)
    assert all(state in (State.DAMAGED, State.MISSING) for state in states[first:])
    if at in ("between-members", "boundary"):  # the archive seems to end: no reader shows that more is missing
        assert set(states[first + 1 :]) == {State.MISSING}
    assert all(record.state is State.GOOD for record in corpus.records if record.path != path)


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        (("garbage-block", {"inserted": True, "place": 0.5}), 0),
        (("garbage-block", {"inserted": False, "place": 0.5}), 1),
        (("wrong-checksum", {"place": 0.5}), 1),
    ],
)
def test_a_bad_header_is_contested_behind_it(storage: str, fault: Any, lost: int) -> None:
    """The strict reader refuses all that follows; one that looks for the next header has it whole."""
    corpus = made("webdataset", 30, faults=[fault], damage=0.3, per_file=10, format=storage)
    (path,) = {record.path for record in struck(corpus)}
    states = [record.state for record in corpus.records if record.path == path]
    first = next(place for place, state in enumerate(states) if state is not State.GOOD)
    assert states[first : first + lost] == [State.DAMAGED] * lost
    assert set(states[first + lost :]) == {State.CONTESTED}
    for record in corpus.records:
        if record.state is State.CONTESTED:
            assert record.said["tarfile"].startswith("raises InvalidHeaderError")
            assert record.said["tarfile-resync"] == "whole"


@pytest.mark.parametrize("field", ["jpg", "cls", "json", "txt"])
def test_a_missing_member_damages_its_sample(field: str) -> None:
    """The sample lacks exactly that member, and both readers refuse it for that reason."""
    corpus = made("webdataset", 30, faults=[("missing-member", {"field": field})])
    assert len(struck(corpus)) == 10
    for record in struck(corpus):
        assert record.state is State.DAMAGED
        assert set(record.said.values()) == {f"raises declared: there is no .{field}"}
        assert len(record.members) == 3 and not any(name.endswith(field) for name in record.members)


def test_interleaved_members_are_contested_for_both_samples() -> None:
    """The members of both samples alternate; only a reader that gathers by key has them whole."""
    corpus = made("webdataset", 20, faults=["interleaved-members"], damage=0.05)
    pair = struck(corpus)
    assert len(pair) == 2 and abs(pair[0].id - pair[1].id) == 1
    names = names_in(corpus, pair[0].path)
    first = names.index(pair[0].members[0])
    assert [int(name.split(".")[0]) for name in names[first : first + 8]] == [pair[0].id, pair[1].id] * 4
    for record in pair:
        assert record.state is State.CONTESTED and record.took_hold
        assert record.said["tarfile-resync"] == "whole"
    assert sum(record.state is State.GOOD for record in corpus.records) == 18


def test_a_key_in_two_shards_is_contested_for_both_samples() -> None:
    """The damaged sample has the key of another, and an index by key can contain only one of them."""
    corpus = made("webdataset", 20, faults=["key-in-two-shards"], damage=0.05, per_file=10)
    pair = struck(corpus)
    assert len(pair) == 2 and abs(pair[0].id - pair[1].id) == 10
    assert pair[0].members == pair[1].members
    assert {record.state for record in pair} == {State.CONTESTED}
    assert names_in(corpus, pair[0].path) != names_in(corpus, pair[1].path)


def test_a_key_in_two_shards_needs_two() -> None:
    """In a single shard the fault has no effect, and the record says so."""
    corpus = made("webdataset", 9, faults=["key-in-two-shards"])
    assert corpus.states() == {State.GOOD}
    assert [record.took_hold for record in struck(corpus)] == [False] * 3


@pytest.mark.parametrize("empty", [True, False])
def test_a_duplicate_member_is_contested(empty: bool) -> None:
    """One reader refuses two members of one name, the other takes the later one."""
    corpus = made("webdataset", 30, faults=[("duplicate-member", {"field": "txt", "empty": empty})])
    for record in struck(corpus):
        assert record.state is State.CONTESTED and len(record.members) == 5
        assert record.said["tarfile-resync"] == ("lossy: .txt changed" if empty else "whole")


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("marker", [True, False])
def test_an_empty_shard_costs_all_its_samples(storage: str, marker: bool) -> None:
    """A file without bytes is refused; an archive without members is legal, and its samples are missing silently."""
    corpus = made(
        "webdataset", 30, faults=[("empty-shard", {"marker": marker})], damage=0.3, per_file=10, format=storage
    )
    assert len(struck(corpus)) == 10
    for record in struck(corpus):
        assert record.state is (State.MISSING if marker else State.DAMAGED)
        assert record.sha256 is None
    data = corpus.files[struck(corpus)[0].path].data
    assert bool(data) is marker


def test_a_cut_gzip_stream_keeps_what_is_before_the_cut() -> None:
    """The first samples are good, the rest is damaged, in that order."""
    corpus = made("webdataset", 30, faults=["cut-gzip"], damage=0.3, per_file=10, format="tar.gz")
    (path,) = {record.path for record in struck(corpus)}
    states = [record.state for record in corpus.records if record.path == path]
    good = states.count(State.GOOD)
    assert 0 < good < 10
    assert states == [State.GOOD] * good + [State.DAMAGED] * (10 - good)
    with pytest.raises(EOFError):
        gzip.decompress(corpus.files[path].data or b"")


def test_a_shard_without_members_is_a_legal_oddity() -> None:
    """Beside the whole shards is one that tarfile reads as empty."""
    corpus = made("webdataset", 30, odd=["no-members"], per_file=10)
    assert corpus.states() == {State.GOOD}
    (path,) = (path for path in corpus.files if path.endswith("-no-members.tar"))
    assert names_in(corpus, path) == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("cut-shard", {"at": "random"}),
        ("garbage-block", {"place": 2}),
        ("wrong-checksum", {"place": -1}),
        ("missing-member", {"field": "wav"}),
        ("duplicate-member", {"field": "wav"}),
    ],
)
def test_bad_parameters_are_refused(wrong: Any) -> None:
    """A parameter that a fault cannot have is the user's error."""
    with pytest.raises(UserError, match="cannot have the parameters"):
        made("webdataset", faults=[wrong], size=(16, 16))


# The strict reader


def test_the_strict_reader_raises_where_tarfile_ends_without_a_word() -> None:
    """A damaged header in the middle ends tarfile's own loop silently, and the strict reader with an error."""
    members = [tarfiles.Member(sample, f"{sample}.txt", b"text") for sample in range(3)]
    data, placed = tarfiles.write(members)
    at = placed[1].header
    spoilt = data[:at] + b"garbage".ljust(512, b"!") + data[at + 512 :]
    with tarfile.open(fileobj=io.BytesIO(spoilt)) as archive:
        assert archive.getnames() == ["0.txt"]
    given = tarfiles.strict(spoilt, False)
    assert [key for key, _ in given.groups] == ["0"]
    assert isinstance(given.error, tarfile.TarError)
    assert [key for key, _ in tarfiles.resync(spoilt, False).groups] == ["0", "2"]


def test_headers_hold_nothing_of_this_machine() -> None:
    """A header contains no time, user or group."""
    data, _ = tarfiles.write([tarfiles.Member(0, "a/ü" + "x" * 200 + ".json", json.dumps({}).encode())])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        (info,) = archive.getmembers()
    assert (info.mtime, info.uid, info.gid, info.uname, info.gname) == (0, 0, 0, "", "")


@pytest.mark.parametrize("storage", FORMATS)
def test_pictures_in_shards_are_judged_by_decoders(storage: str) -> None:
    """Every fault of a baseline JPEG strikes a member; the shard is read whole, and decoders say what became of the picture."""
    names = [name for name, cls in disk_faults("webdataset").items() if issubclass(cls, PictureFault) and not cls.by_name]
    assert {"jpeg-cut-scan", "all-zeros", "html-page", "decompression-bomb"} <= set(names)
    corpus = made("webdataset", 120, faults=names, per_file=10, format=storage)
    states: dict[str, set[State]] = {name: set() for name in names}
    for record in corpus.records:
        if not record.fault:
            assert record.state is State.GOOD
            continue
        states[record.fault["fault"]].add(record.state)
        assert record.took_hold == (record.state is not State.GOOD)
        with tarfile.open(fileobj=io.BytesIO(tar_of(corpus, record.path))) as archive:
            picture = archive.extractfile(f"{record.id:08d}.jpg").read()  # type: ignore[union-attr]
        try:
            with_pillow(picture)
            raised = False
        except Exception:  # noqa: BLE001 - whatever it raises
            raised = True
        assert record.said["pillow"].startswith("raises ") == raised
    assert states["all-zeros"] == states["html-page"] == {State.DAMAGED}
