"""Picture corpora: what is made, how it is damaged, and whether the manifest is correct."""

from __future__ import annotations

import io
import os
import random
import shutil
import stat
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("faker")

from badbatch.harness.corpus import arithmetic
from badbatch.harness.corpus.base import Choice, Recipe, SampleRecord, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.damage.oddities import PictureOddity
from badbatch.harness.corpus.damage.paths import PathFault
from badbatch.harness.corpus.damage.pictures import PictureFault
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.manifest import read_samples
from badbatch.harness.corpus.pipes import feeding
from badbatch.harness.corpus.recipe import kind_of
from badbatch.harness.corpus.stamp import Stamp, can_stamp, encode_jpeg
from badbatch.harness.corpus.studio import studio
from badbatch.harness.corpus.truth import judge
from badbatch.harness.faults import from_json
from badbatch.harness.identity.marks import draw_mark, read_mark
from PIL import Image, ImageFile, ImageOps

FAULTS = {name: cls for name, cls in disk_faults("imagefolder").items() if not cls.by_name}
PICTURES = sorted(name for name, cls in FAULTS.items() if issubclass(cls, PictureFault))
ODDITIES = sorted(name for name, cls in FAULTS.items() if issubclass(cls, PictureOddity))


@pytest.fixture(scope="module")
def rotten(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SampleRecord]]:
    """A corpus with two samples of every fault and every oddity, and its records."""
    root = tmp_path_factory.mktemp("corpora") / "rotten"
    damage, odd = len(FAULTS) - len(ODDITIES), len(ODDITIES)
    samples = 40 + 2 * damage + 2 * odd
    recipe = Recipe("imagefolder", samples, seed=3, damage=2 * damage / samples, oddities=2 * odd / samples)
    make(str(root), recipe, jobs=1)
    return root, list(read_samples(str(root)))


def of(records: list[SampleRecord], name: str) -> list[SampleRecord]:
    """The records of one fault or oddity."""
    return [record for record in records if (record.fault or record.oddity or {}).get("fault") == name]


def undamaged(fault: PictureFault, sample: int) -> bytes:
    """A picture stored as the fault needs it."""
    place = studio(1, (256, 256), 100)
    if fault.needs == "png":
        return place.canvas(sample).png()
    if fault.needs == "progressive":
        return place.canvas(sample).jpeg(progressive=True)
    return place.jpeg(sample)


@pytest.mark.parametrize("size", [(256, 256), (512, 256), (256, 512)])
@pytest.mark.parametrize("quality", [50, 70, 92])
def test_a_stamped_jpeg_is_what_the_encoder_writes(size: tuple[int, int], quality: int) -> None:
    """Exchanging the mark's bits gives byte for byte the file that Pillow saves for the same pixels."""
    pixels = np.random.default_rng(quality).integers(0, 256, (size[1] // 8, size[0] // 8, 3)).astype(np.uint8)
    pixels = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)).copy()
    stamp = Stamp(pixels, quality)
    for sample in (0, 1, 77, 1_000_000, 16_777_215):
        draw_mark(pixels, sample)
        assert encode_jpeg(pixels, quality) == stamp.with_id(sample)


def test_sizes_whose_cells_are_no_whole_blocks_are_encoded_as_usual() -> None:
    """Pictures of a size that cannot be stamped still have their ids."""
    assert not can_stamp((224, 224))
    place = studio(1, (224, 160), 100)
    for sample in (0, 5, 99):
        picture = Image.open(io.BytesIO(place.jpeg(sample)))
        assert ((224, 160), sample) == (picture.size, read_mark(picture).id)


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_fault_changes_the_file_in_every_turn(name: str) -> None:
    """Every turn of a fault survives JSON, changes the file, and gives the same bytes again from the same draw."""
    cls = FAULTS[name]
    for turn in range(7):
        fault = cls.turn(turn, random.Random(turn))
        assert isinstance(fault, PictureFault)
        assert fault == from_json(fault.to_json())
        data, other = undamaged(fault, 1), undamaged(fault, 2)
        damaged = fault.damage(data, random.Random(5), lambda other=other: other)
        assert damaged != data
        assert damaged == fault.damage(data, random.Random(5), lambda other=other: other)


def test_a_corpus_has_every_fault_and_oddity(rotten: tuple[Path, list[SampleRecord]]) -> None:
    """With twice as many struck samples as faults, every fault and every oddity occurs."""
    _, records = rotten
    found = Counter((record.fault or record.oddity or {"fault": None})["fault"] for record in records)
    assert set(FAULTS) | {None} == set(found)
    assert {count for name, count in found.items() if name is not None} <= {1, 2, 3}


STATES = {
    "no-bytes": {State.DAMAGED},
    "all-zeros": {State.DAMAGED},
    "html-page": {State.DAMAGED},
    "json-error": {State.DAMAGED},
    "lfs-pointer": {State.DAMAGED},
    "empty-zip": {State.DAMAGED},
    "decompression-bomb": {State.DAMAGED},
    "jpeg-cut-header": {State.DAMAGED},
    "missing-file": {State.MISSING},
    "directory-instead": {State.MISSING},
    "dangling-link": {State.DAMAGED},
    "hanging-pipe": {State.HANGS},
    "trickling-pipe": {State.SLOW},
    "flipped-scan-bits": {State.CONTESTED, State.DAMAGED},
    "spliced": {State.CONTESTED, State.DAMAGED},
}


@pytest.mark.parametrize("name", sorted(STATES))
def test_states_are_what_decoders_say(rotten: tuple[Path, list[SampleRecord]], name: str) -> None:
    """Faults that leave no doubt come to the state that they must come to."""
    _, records = rotten
    assert {record.state for record in of(records, name)} <= STATES[name]


def test_a_cut_scan_is_refused_by_the_strict_and_half_read_by_the_lenient(
    rotten: tuple[Path, list[SampleRecord]],
) -> None:
    """Of a JPEG cut in its scan a lenient decoder delivers a picture that is not read as whole."""
    root, records = rotten
    cut = of(records, "jpeg-cut-scan")[0]
    assert State.DAMAGED is cut.state
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        assert not read_mark(Image.open(root / cut.path)).whole
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def test_good_samples_decode_and_say_who_they_are(rotten: tuple[Path, list[SampleRecord]]) -> None:
    """Every good sample, odd or not, is decoded by a reader that knows nothing of badbatch, and its id read back."""
    root, records = rotten
    for record in records:
        if record.state is not State.GOOD or record.special is not None:
            continue
        with Image.open(root / record.path) as picture:
            picture.load()
            if record.identity == "content" and record.took_hold is not False:
                assert record.id == read_mark(picture).id, record


@pytest.mark.parametrize("size", [(256, 256), (224, 224), (96, 64)])
@pytest.mark.parametrize("name", ODDITIES)
def test_each_oddity_is_legal_and_marked(name: str, size: tuple[int, int]) -> None:
    """Every variant of an oddity is a whole picture to all decoders here, and has a readable id unless there is no room for it."""
    canvas = studio(2, size, 50).canvas(7)
    for turn in range(8):
        oddity = FAULTS[name].turn(turn, random.Random(turn))
        assert isinstance(oddity, PictureOddity)
        data, ending = oddity.encode(canvas)
        assert judge(data, data)["pillow"] == "whole"
        reading = read_mark(Image.open(io.BytesIO(data)))
        assert (7 if oddity.marked else None) == reading.id
        assert oddity.rename("stem-7", ending, canvas.words)
        if oddity == FAULTS[name].turn(turn + 1, random.Random(turn)):
            break


def test_exif_pictures_are_upright_once_turned() -> None:
    """A picture with an orientation looks, once it is turned as EXIF says, like the picture without."""
    canvas = studio(2, (256, 128), 50).canvas(7)
    for orientation in range(1, 9):
        oddity = from_json({"fault": "exif-orientation", "orientation": orientation})
        assert isinstance(oddity, PictureOddity)
        turned = ImageOps.exif_transpose(Image.open(io.BytesIO(oddity.encode(canvas)[0])))
        assert turned.size == (256, 128)
        assert np.abs(np.asarray(turned).astype(int) - canvas.pixels).mean() < 12


@pytest.mark.parametrize("size", [(64, 64), (37, 90)])
def test_arithmetic_coding_is_decoded_to_the_same_pixels_as_huffman_coding(size: tuple[int, int]) -> None:
    """Our arithmetic-coded JPEG, of noise and of flat areas, decodes to what the same coefficients in Huffman codes do."""
    source = np.random.default_rng(size[0])
    for spread in (2, 40, 128):
        grey = (128 + source.integers(-spread, spread, size[::-1])).astype(np.uint8)
        grey[:20] = 200
        usual = io.BytesIO()
        Image.fromarray(grey).save(usual, "JPEG", quality=50)
        ours = np.asarray(Image.open(io.BytesIO(arithmetic.encode(grey)))).astype(int)
        # Their transforms round differently, so a few coefficients are one step apart.
        assert np.abs(ours - np.asarray(Image.open(usual))).mean() < 2


def test_odd_names_are_odd(rotten: tuple[Path, list[SampleRecord]]) -> None:
    """Names have the oddity that the manifest states, and every path is different."""
    root, records = rotten
    names = {oddity: of(records, oddity)[0].path.split("/")[1] for oddity in ODDITIES}
    assert len(names["long-name"]) == 200
    assert names["leading-dash"].startswith("-")
    assert " " in names["name-with-spaces"]
    assert not names["non-ascii-name"].isascii()
    assert names["upper-case-ending"].endswith(".JPG")
    assert len(records) == len({record.path for record in records})
    assert all(os.path.lexists(root / record.path) for record in records if record.special != "missing")


def test_what_is_at_a_path_is_what_the_manifest_says(rotten: tuple[Path, list[SampleRecord]]) -> None:
    """Links, folders, pipes and missing files are there, or not, as recorded."""
    root, records = rotten
    checks: dict[str, Any] = {
        "dangling-link": lambda path: path.is_symlink() and not path.exists(),
        "directory": lambda path: path.is_dir(),
        "fifo": lambda path: stat.S_ISFIFO(path.lstat().st_mode),
        "missing": lambda path: not os.path.lexists(path),
        "no-permission": lambda path: path.lstat().st_mode & 0o777 == 0,
    }
    for record in records:
        if record.special is not None:
            assert checks[record.special](root / record.path), record


def test_no_permission_takes_hold_exactly_when_the_file_cannot_be_read(
    rotten: tuple[Path, list[SampleRecord]],
) -> None:
    """A file without permission counts as damaged only for a user who cannot read it."""
    root, records = rotten
    for record in of(records, "no-permission"):
        try:
            (root / record.path).read_bytes()
            readable = True
        except PermissionError:
            readable = False
        assert (not readable) == record.took_hold == (record.state is State.DAMAGED)


def test_a_slow_pipe_delivers_the_whole_picture_late(tmp_path: Path) -> None:
    """While it is fed, a trickling pipe gives every reader the undamaged picture, not before its time, again and again."""
    root = tmp_path / "slow"
    fault = Choice("trickling-pipe", parameters={"seconds": 0.3})
    make(str(root), Recipe("imagefolder", 3, damage=0.3, faults=(fault,)), jobs=1)
    record = next(record for record in read_samples(str(root)) if record.state is State.SLOW)
    with feeding(str(root)) as fed:
        assert fed == 1
        for _ in range(2):
            began = time.monotonic()
            picture = Image.open(io.BytesIO((root / record.path).read_bytes()))
            assert record.id == read_mark(picture).id
            assert time.monotonic() - began >= 0.25


def test_a_slow_pipe_ends_for_a_reader_that_is_late(tmp_path: Path) -> None:
    """A reader who stops before the end of the delivery finds exactly the picture there, though others were served since."""
    root = tmp_path / "slow"
    fault = Choice("trickling-pipe", parameters={"seconds": 0.05})
    recipe = Recipe("imagefolder", 3, damage=0.3, faults=(fault,))
    make(str(root), recipe, jobs=1)
    record = next(record for record in read_samples(str(root)) if record.state is State.SLOW)
    wanted = kind_of("imagefolder").undamaged(recipe, record.id)
    with feeding(str(root)):
        late = os.open(root / record.path, os.O_RDONLY)
        data = b""
        while len(data) < len(wanted):
            data += os.read(late, 1 << 20)
        # The late reader still has the pipe open, where a writer might come again.
        assert (root / record.path).read_bytes() == wanted
        assert os.read(late, 1 << 20) == b""
        os.close(late)
        assert data == wanted
    assert os.listdir(tmp_path) == ["slow"]


def test_a_hanging_pipe_gives_nothing(rotten: tuple[Path, list[SampleRecord]]) -> None:
    """Nobody writes into a hanging pipe: who may write finds no reader, who reads without waiting finds nothing."""
    root, records = rotten
    for record in of(records, "hanging-pipe"):
        descriptor = os.open(root / record.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert os.read(descriptor, 1) == b""
        finally:
            os.close(descriptor)


def test_small_pictures_are_known_by_their_paths(tmp_path: Path) -> None:
    """Pictures too small for a mark can be made, and the manifest says that only the path has the id."""
    make(str(tmp_path / "small"), Recipe("imagefolder", 5, damage=0, size=(32, 20)), jobs=1)
    assert {"path"} == {record.identity for record in read_samples(str(tmp_path / "small"))}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A user's own folder: 30 good pictures of three formats, one bad one, and a file that is not a picture."""
    root = tmp_path / "photos"
    (root / "cats").mkdir(parents=True)
    (root / "dogs" / "big").mkdir(parents=True)
    source = np.random.default_rng(1)
    for index in range(30):
        picture = Image.fromarray(source.integers(0, 256, (8, 8, 3)).astype(np.uint8)).resize((80, 60))
        folder = root / ("cats" if index % 2 else "dogs/big")
        options = {"progressive": True} if index % 5 == 0 else {}
        picture.save(folder / f"p {index}.{'png' if index % 3 == 0 else 'jpg'}", **(options if index % 3 else {}))
    (root / "cats" / "broken.jpg").write_bytes((root / "cats" / "p 1.jpg").read_bytes()[:700])
    (root / "labels.txt").write_text("not a picture")
    return root


def test_copies_of_the_users_own_files_are_damaged_and_the_originals_are_not(photos: Path, tmp_path: Path) -> None:
    """With an origin every picture is copied under its own path, the share is damaged, and no original is touched."""
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in photos.rglob("*") if path.is_file()}
    root = tmp_path / "damaged"
    make(str(root), Recipe("imagefolder", 0, seed=2, damage=0.5, origin=str(photos)), jobs=1)
    records = list(read_samples(str(root)))
    assert before == {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in photos.rglob("*") if path.is_file()
    }
    assert {str(path.relative_to(photos)) for path in before if path.suffix != ".txt"} == {r.path for r in records}
    assert len(records) * 0.5 - 1 <= sum(record.fault is not None for record in records) <= len(records) * 0.5 + 1
    for record in records:
        original = (photos / record.path).read_bytes()
        if record.fault is None:
            assert original == (root / record.path).read_bytes()
        elif record.special is None:
            assert original != (root / record.path).read_bytes()


def test_a_damaged_original_is_recorded_as_damaged(photos: Path, tmp_path: Path) -> None:
    """A user's picture that is already damaged is copied unchanged, and the manifest does not call it good."""
    root = tmp_path / "copies"
    make(str(root), Recipe("imagefolder", 0, damage=0, origin=str(photos)), jobs=1)
    broken = [record for record in read_samples(str(root)) if record.path == "cats/broken.jpg"]
    assert [record.state for record in broken] == [State.DAMAGED]
    assert "the original is damaged itself" in broken[0].why


def test_a_fault_damages_only_files_that_are_stored_as_it_needs(photos: Path, tmp_path: Path) -> None:
    """With only PNG faults, the user's JPEGs stay unchanged."""
    root = tmp_path / "pngs"
    make(str(root), Recipe("imagefolder", 0, damage=1, faults=(Choice("png-cut"),), origin=str(photos)), jobs=1)
    struck = {Path(record.path).suffix for record in read_samples(str(root)) if record.fault is not None}
    assert {".png"} == struck


def test_a_reader_without_badbatch_sees_an_ordinary_folder(tmp_path: Path) -> None:
    """Walked as torchvision's ImageFolder walks, a clean corpus has its classes and every sample, all decodable."""
    root = tmp_path / "clean"
    make(str(root), Recipe("imagefolder", 50, damage=0, oddities=0), jobs=1)
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found = [
        os.path.join(folder, file) for name in classes for folder, _, files in os.walk(root / name) for file in files
    ]
    assert 1 < len(classes) <= 10
    assert set(range(50)) == {read_mark(Image.open(path)).id for path in found}
    shutil.rmtree(root)


def test_every_path_fault_says_what_it_places() -> None:
    """Each fault of a path declares what is there, and why the sample has its state."""
    placed = [cls for cls in FAULTS.values() if issubclass(cls, PathFault)]
    assert len(placed) >= 6
    assert all(cls.special and cls.why for cls in placed)
