"""Batches from disk, in the forms that libraries deliver them: which samples they contain, and whether they are whole."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for _needed in ("PIL", "faker", "pyarrow"):
    pytest.importorskip(_needed)

import torch
from badbatch.conformance.engine.preparations import Preparations
from badbatch.conformance.scenarios.disk import find
from badbatch.harness.corpus import content
from badbatch.harness.sources.base import find as find_source
from badbatch.harness.trial.batch import UnreadableBatch
from badbatch.harness.trial.event_log import Content, Kind
from badbatch.harness.trial.on_skip import OnSkip
from badbatch.harness.trial.stored_batch import FIELDS, StoredBatchReader
from PIL import Image, ImageFile
from torch.utils.data import default_collate

Read = Callable[..., tuple[list[int], list[int]]]
WHOLE, WRONG, UNCHECKED, MARKED, MIXED = (int(flag) for flag in Content)


class Shelf:
    """Corpora, and readers of their batches."""

    def __init__(self, folder: Path) -> None:
        self._corpora = Preparations(folder)

    @functools.cache  # noqa: B019 - one shelf, for the tests of this module
    def root(self, kind: str, scenario: str) -> Path:
        return Path(self._question(kind, scenario)["root"])

    def _question(self, kind: str, scenario: str) -> dict[str, Any]:
        return self._corpora.settings(find(scenario, kind), kind, 40, 4, seed=0)

    def reader(self, kind: str, scenario: str = "clean", ids: Any = None) -> StoredBatchReader:
        question = self._question(kind, scenario)
        return StoredBatchReader(
            Path(question["root"]), question["plan"], ids, integers_are_ids=find_source(kind).integers_are_ids  # type: ignore[attr-defined]
        )

    def read(self, batch: Any, kind: str, scenario: str = "clean", ids: Any = None) -> tuple[list[int], list[int]]:
        found, flags = self.reader(kind, scenario, ids).read(batch)
        return found.tolist(), flags.tolist()

    def paths(self, scenario: str = "clean") -> list[str]:
        """The files of a corpus of pictures, in order of their ids."""
        root = self.root("imagefolder", scenario)
        lines = (root / "manifest.badbatch").read_text(encoding="utf-8").splitlines()
        return [str(root / json.loads(line)["path"]) for line in lines]


class Skips:
    """A recorder of skips."""

    def __init__(self) -> None:
        self.samples: list[int] = []

    def __call__(self, kind: Kind, sample: int, aux: int) -> None:
        assert kind is Kind.SKIPPED
        self.samples.append(sample)

    def error(self, reason: BaseException | str) -> int:
        return 0


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("shelf"))


def tensor(path: str) -> torch.Tensor:
    """A picture as float32 (3, height, width) in 0…1."""
    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).float() / 255


def rows(*samples: int) -> list[dict[str, Any]]:
    """Rows of ``parquet`` and ``jsonl``, uncollated."""
    return [content.row(0, sample) for sample in samples]


# --- pictures ------------------------------------------------------------------------------------------------------------


def test_pictures_say_themselves_which_they_are(shelf: Shelf) -> None:
    """If pictures arrive with their classes, the mark is read, and the classes do not count as ids."""
    images = torch.stack([tensor(path) for path in shelf.paths()[3:6]])
    for batch in ((images, torch.tensor([7, 8, 9])), [images, torch.tensor([7, 8, 9])], {"image": images}, images):
        assert shelf.read(batch, "imagefolder") == ([3, 4, 5], [WHOLE] * 3)


@pytest.mark.parametrize("change", [lambda x: (x - 0.45) / 0.22, lambda x: x.half(), lambda x: (x * 255).byte()])
def test_pictures_may_be_normalised(shelf: Shelf, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Floats of any scale and bytes are read alike."""
    images = change(torch.stack([tensor(path) for path in shelf.paths()[:2]]))
    assert shelf.read((images, torch.zeros(2, dtype=torch.int64)), "imagefolder") == ([0, 1], [WHOLE] * 2)


def test_paths_are_looked_up(shelf: Shelf) -> None:
    """A path names its sample absolutely, relatively to the corpus, and by the file's name."""
    path = shelf.paths()[5]
    for name in (path, str(Path(path).relative_to(shelf.root("imagefolder", "clean").resolve())), Path(path).name, Path(path)):
        assert shelf.read({"path": [name]}, "imagefolder") == ([5], [UNCHECKED])


def test_a_half_grey_picture_is_not_whole(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's result for a truncated file, if it loads truncated images, is identified by its upper half, and is wrong."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    paths = shelf.paths("one-bad")
    images = torch.stack([tensor(paths[4]), tensor(paths[5])])
    assert shelf.read((images, torch.zeros(2, dtype=torch.int64)), "imagefolder", "one-bad") == ([4, 5], [WHOLE, WRONG])


def test_a_picture_that_is_only_opened_is_decoded_to_be_judged(shelf: Shelf) -> None:
    """PIL pictures in a list are read; one that cannot be decoded is not a good one."""
    paths = shelf.paths("one-bad")[4:6]
    batch = {"image": [Image.open(io.BytesIO(Path(path).read_bytes())) for path in paths], "path": paths}
    assert shelf.read(batch, "imagefolder", "one-bad") == ([4, 5], [WHOLE, WRONG])


def test_a_picture_beside_the_path_of_another(shelf: Shelf) -> None:
    """The picture decides which sample it is; a path that names another sample is reported as a mixture."""
    images = torch.stack([tensor(path) for path in shelf.paths()[:2]])
    found = shelf.read({"image": images, "path": shelf.paths()[1:3]}, "imagefolder")
    assert found == ([1, 2], [WRONG | MIXED] * 2)


def test_pictures_too_small_for_a_mark_may_be_nameless(shelf: Shelf) -> None:
    """If legal pictures have no mark, a picture without an id is left to the ledger; otherwise it is fabricated."""
    images = torch.stack([tensor(shelf.paths()[1]), torch.full((3, 64, 64), 0.5)])
    labels = torch.zeros(2, dtype=torch.int64)
    assert shelf.read((images, labels), "imagefolder", "oddities") == ([1, -1], [WHOLE, UNCHECKED])
    assert shelf.read((images, labels), "imagefolder") == ([1, -1], [WHOLE, WRONG])


def test_pictures_without_an_id_are_reported(shelf: Shelf) -> None:
    """A batch in which no picture has a readable mark is refused, with advice."""
    with pytest.raises(UnreadableBatch, match=r"no id mark can be read .* give it a key named path or id, or declare @loader"):
        shelf.read((torch.rand(2, 3, 64, 64), torch.tensor([1, 2])), "imagefolder")


def test_a_factory_may_say_the_ids(shelf: Shelf) -> None:
    """``@loader(ids=…)`` comes first; one that does not fit the batch is refused."""
    batch = (torch.rand(2, 3, 64, 64), torch.tensor([1, 2]))
    assert shelf.read(batch, "imagefolder", ids=lambda batch: batch[1])[0] == [1, 2]
    with pytest.raises(UnreadableBatch, match="one for each sample"):
        shelf.read(batch, "imagefolder", ids=lambda batch: batch[1][:1])


# --- rows ----------------------------------------------------------------------------------------------------------------


def collated(*samples: int) -> dict[str, Any]:
    """What torch makes of rows without their nested lists."""
    plain = [{name: value for name, value in row.items() if name != "spans"} for row in rows(*samples)]
    return dict(default_collate(plain))


def test_rows_in_every_form(shelf: Shelf) -> None:
    """Lists of rows, columns of lists, tensors and Arrow's batches are read alike."""
    import pyarrow as pa

    table = pa.Table.from_pylist(rows(3, 4))
    columns = {name: [row[name] for row in rows(3, 4)] for name in rows(3)[0]}
    for batch in (rows(3, 4), tuple(rows(3, 4)), columns, collated(3, 4), table, table.to_batches()[0]):
        assert shelf.read(batch, "parquet") == ([3, 4], [WHOLE] * 2)


def test_rows_of_pandas(shelf: Shelf) -> None:
    """A data frame is read by its columns."""
    pandas = pytest.importorskip("pandas")
    assert shelf.read(pandas.DataFrame(rows(3, 4)), "parquet") == ([3, 4], [WHOLE] * 2)


def test_rows_know_themselves_without_an_id(shelf: Shelf) -> None:
    """Any field of content says which sample it is."""
    assert shelf.read({"text": [row["text"] for row in rows(3, 4)]}, "parquet") == ([3, 4], [WHOLE] * 2)
    assert shelf.read({"id": [3, 4]}, "parquet") == ([3, 4], [UNCHECKED] * 2)


def test_a_field_of_another_row(shelf: Shelf) -> None:
    """The sample is the one that most fields belong to; the other field is reported as a mixture."""
    row = {**rows(3)[0], "text": rows(4)[0]["text"]}
    assert shelf.read([row], "parquet") == ([3], [WRONG | MIXED])
    twice = {**rows(3)[0], "id": 2}  # the same id twice, as the corpus may have it
    assert shelf.read([twice], "parquet") == ([3], [WRONG | MIXED])


@pytest.mark.parametrize("field", ["text", "number", "amount", "spans"])
def test_a_damaged_field(shelf: Shelf, field: str) -> None:
    """A null, or a value that says nothing where it should, is content that is not the sample's."""
    nothing = {"text": "", "number": float("nan"), "amount": 0, "spans": []}[field]
    for value in (None, nothing):
        assert shelf.read([{**rows(3)[0], field: value}], "parquet") == ([3], [WRONG])


def test_a_legal_oddity_may_say_nothing(shelf: Shelf) -> None:
    """Where the corpus has an empty text, an empty text is whole."""
    question = shelf._question("parquet", "oddities")
    odd = next(sample for sample, fault in question["plan"].items() if fault.kind == "empty-text")
    assert shelf.read([{**rows(odd)[0], "text": ""}], "parquet", "oddities") == ([odd], [WHOLE])


def test_missing_samples_in_every_form(shelf: Shelf) -> None:
    """None in place of a row, a row of nulls, and a mask mark what is missing."""
    nulls = dict.fromkeys(rows(3)[0])
    assert shelf.read([rows(3)[0], None, nulls], "parquet") == ([3, -1, -1], [WHOLE, MARKED, MARKED])
    masked = {**collated(3, 4), "missing": torch.tensor([False, True])}
    assert shelf.read(masked, "parquet") == ([3, 4], [WHOLE, MARKED])
    valid = {**collated(3, 4), "valid": torch.tensor([True, False])}
    assert shelf.read(valid, "parquet") == ([3, 4], [WHOLE, MARKED])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_windows_in_every_form(shelf: Shelf, dtype: torch.dtype) -> None:
    """Windows are read from tensors of any floating type, with and without their ids; a short one is wrong."""
    values = torch.stack([torch.from_numpy(content.window(sample)) for sample in (3, 4)]).to(dtype)
    for batch in ({"id": torch.tensor([3, 4]), "values": values}, (values, torch.tensor([3, 4])), {"values": values}):
        assert shelf.read(batch, "windows") == ([3, 4], [WHOLE] * 2)
    assert shelf.read({"id": [3], "values": [content.window(3)[:32]]}, "windows") == ([3], [WRONG])


def test_members_of_shards(shelf: Shelf) -> None:
    """The sample of a tar shard is read from its decoded members, or from their bytes, under its key."""
    import tarfile

    root = shelf.root("webdataset", "clean")
    with tarfile.open(sorted(root.glob("data/*.tar"))[0]) as archive:
        members = {name: archive.extractfile(name).read() for name in archive.getnames()[:4]}  # type: ignore[union-attr]
    key = next(iter(members)).partition(".")[0]
    sample: dict[str, Any] = {"__key__": key, **{name.rpartition(".")[2]: data for name, data in members.items()}}
    reader = shelf.reader("webdataset")
    found, flags = reader.read([sample])
    assert (found.tolist(), flags.tolist()) == ([0], [WHOLE])
    there = {name for bit, name in enumerate(FIELDS) if int(reader.fields[0]) >> bit & 1}  # type: ignore[index]
    assert there == {"__key__", "picture", "txt", "json", "cls"}
    columns = {name: [value] for name, value in sample.items()}
    assert shelf.read(columns, "webdataset") == ([0], [WHOLE])
    assert shelf.read([{**sample, "txt": rows(1)[0]["text"]}], "webdataset") == ([0], [WRONG | MIXED])


def test_batches_that_say_nothing_are_refused(shelf: Shelf) -> None:
    """A batch without rows, or with rows that name no sample, is reported with what was looked at."""
    for batch in (object(), {"label": [None, "x"]}, 5):
        with pytest.raises(UnreadableBatch, match="no sample ids found in"):
            shelf.read(batch, "parquet")


def test_a_skip_is_reported_by_number_path_or_key(shelf: Shelf) -> None:
    """On disk a loader may name what it skips as it knows it; what names nothing is refused with the names that do."""
    paths, skips = shelf.paths(), Skips()
    on_skip = OnSkip(skips, shelf.reader("imagefolder").names)  # type: ignore[arg-type]
    for named in (3, np.int64(4), paths[5], Path(paths[6]), os.path.basename(paths[7]), "nowhere.jpg", -1):
        on_skip(named, "bad")  # type: ignore[arg-type]
    OnSkip(skips, shelf.reader("webdataset").names)("00000008", "bad")  # type: ignore[arg-type]
    assert skips.samples == [3, 4, 5, 6, 7, -1, -1, 8]
    with pytest.raises(TypeError, match=r"the sample's number .* or its path or key, not None"):
        on_skip(None, "bad")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the sample's number \(-1 where it is not known\), not 'a.jpg'"):
        OnSkip(skips)("a.jpg", "bad")  # type: ignore[arg-type]


# --- pictures without a readable mark, beside their path ---------------------------------------------------------------------


def test_a_destroyed_picture_is_wrong_although_its_path_is_right(shelf: Shelf) -> None:
    """White, black and noise are judged by their pixels: the path beside them proves nothing.

    This also holds among oddities.
    """
    noise = torch.from_numpy(np.random.default_rng(0).random((3, 64, 64), np.float32))
    for scenario in ("clean", "oddities"):
        paths = shelf.paths(scenario)
        for sample in (0, 32):
            for picture in (torch.ones(3, 64, 64), torch.zeros(3, 64, 64), noise, noise * 4 - 2, torch.full((3, 64, 64), torch.nan)):
                found = shelf.read({"image": picture[None], "path": [paths[sample]]}, "imagefolder", scenario)
                assert found == ([sample], [WRONG])
    small = {"image": noise[None, :, :28, :28], "path": [shelf.paths()[0]]}
    assert shelf.read(small, "imagefolder") == ([0], [WRONG])


def test_a_factory_that_names_its_samples_is_judged_as_well(shelf: Shelf) -> None:
    """``@loader(ids=…)`` says which sample it is; the pixels say whether it is whole."""
    batch = (torch.stack([tensor(shelf.paths()[1]), torch.ones(3, 64, 64)]), torch.tensor([1, 2]))
    assert shelf.read(batch, "imagefolder", ids=lambda batch: batch[1]) == ([1, 2], [WHOLE, WRONG])


@pytest.mark.parametrize(
    "change",
    [
        lambda picture: picture.crop((5, 9, 49, 50)),
        lambda picture: picture.crop((20, 4, 60, 40)).transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda picture: picture.crop((0, 0, 40, 64)).rotate(90, expand=True),
        lambda picture: picture.resize((28, 28)),
        lambda picture: picture.resize((12, 12)),
        lambda picture: picture.crop((8, 8, 50, 56)).resize((224, 224)),
    ],
    ids=["crop", "mirrored crop", "turned crop", "small", "tiny", "enlarged crop"],
)
def test_a_picture_beyond_its_mark_is_compared_with_the_stored_one(shelf: Shelf, change: Callable[[Any], Any]) -> None:
    """A picture that is cropped too far, or made too small for its mark, is whole where it comes with its path."""
    for path, sample in ((shelf.paths()[3], 3), (shelf.paths()[8], 8)):
        with Image.open(path) as picture:
            pixels = np.asarray(change(picture.convert("RGB")), np.float32).transpose(2, 0, 1)
        for scale in (lambda x: x / 255, lambda x: (x / 255 - 0.45) / 0.22, lambda x: 255 - x):
            assert shelf.read({"image": scale(pixels)[None], "path": [path]}, "imagefolder") == ([sample], [WHOLE])


def test_a_key_beside_a_picture_proves_nothing_either(shelf: Shelf) -> None:
    """From shards the stored picture is found among the members of the key."""
    crop = None
    root = shelf.root("webdataset", "clean")
    import tarfile

    with tarfile.open(sorted(root.glob("data/*.tar"))[0]) as archive:
        data = archive.extractfile("00000002.jpg").read()  # type: ignore[union-attr]
    with Image.open(io.BytesIO(data)) as picture:
        crop = np.asarray(picture.convert("RGB").crop((4, 4, 44, 48)))
    batch = {"jpg": [crop, np.full((64, 64, 3), 255, np.uint8)], "__key__": ["00000002", "00000003"]}
    assert shelf.read(batch, "webdataset") == ([2, 3], [WHOLE, WRONG])


def test_a_key_column_with_one_ambiguous_key_is_a_key_column(shelf: Shelf) -> None:
    """A key that two samples have names neither; the other keys of the column still name theirs."""
    root = shelf.root("webdataset", "damage-identity")
    from collections import Counter

    from badbatch.harness.corpus import tarfiles
    from badbatch.harness.corpus.manifest import read_samples

    keys = [tarfiles.split(record.members[0])[0] for record in read_samples(str(root))]
    twice = next(key for key, number in Counter(keys).items() if number > 1)
    pictures = np.full((2, 64, 64, 3), 255, np.uint8)
    ids, _ = shelf.read((pictures, [keys[0], twice]), "webdataset", "damage-identity")
    assert ids == [0, -1]


def test_a_thin_picture_is_known_by_its_looks(shelf: Shelf) -> None:
    """A legal picture without a mark and without a name is known where it has contrast; one of one colour is not."""
    paths = shelf.paths("oddities")
    for sample, found in ((34, ([34], [WHOLE])), (23, ([-1], [UNCHECKED]))):
        with Image.open(paths[sample]) as picture:
            pixels = np.asarray(picture.convert("RGB").resize((64, 64)))
        assert shelf.read((pixels[None], torch.zeros(1, dtype=torch.int64)), "imagefolder", "oddities") == found
        assert shelf.read({"image": pixels[None], "path": [paths[sample]]}, "imagefolder", "oddities") == ([sample], [WHOLE])


def test_comparing_is_no_read_of_the_loader(shelf: Shelf) -> None:
    """The stored picture is opened where the record of opens does not count it as the loader's."""
    import sys

    root = shelf.root("imagefolder", "clean")
    opened: list[str] = []
    watching = [True]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching[0] and event == "open" and isinstance(arguments[0], str):
            opened.append(os.path.abspath(arguments[0]))

    reader = shelf.reader("imagefolder")
    batch = {"image": np.full((1, 64, 64, 3), 9, np.uint8), "path": [shelf.paths()[1]]}
    sys.addaudithook(watch)
    try:
        reader.read(batch)
    finally:
        watching[0] = False
    assert opened
    assert not [path for path in opened if path.startswith(f"{root}{os.sep}")]
