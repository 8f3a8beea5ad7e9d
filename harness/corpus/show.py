"""What a contact sheet shows: each fault of a corpus before and after, in each reader's view, with its truth and reason."""

from __future__ import annotations

import collections
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import tarfiles
from .base import CorpusKind, Recipe, SampleRecord
from .folders import Folder, folder
from .manifest import read_corpus, read_recipe, read_samples
from .oracles import WHOLE
from .recipe import kind_of
from .stored_text import StoredTexts
from .text_diff import Piece, differences

if TYPE_CHECKING:
    from PIL import Image

THUMB = 128
"""Pixels of a picture's longer side on the sheet."""
_ALIKE = 24  # mean difference of two thumbnails, of 255, up to which they look the same
_LOUDER = 8  # the factor by which a shown difference is enlarged
COLOURS = {  # of states, as classes of the page and words of the picture
    "good": "#2e7d32",
    "damaged": "#c62828",
    "missing": "#c62828",
    "hangs": "#c62828",
    "contested": "#b26a00",
    "slow": "#b26a00",
}


@dataclass(frozen=True)
class View:
    """One cell: what one reader shows of a sample, as a thumbnail or in words."""

    picture: Image.Image | None = None
    words: str = ""

    @property
    def kind(self) -> str:
        """``picture``, ``whole`` (a reader without an error), ``refused``, ``note`` or ``absent``."""
        if self.picture is not None:
            return "picture"
        if not self.words:
            return "absent"
        return "note" if self.words in _NOTES else "whole" if self.words == WHOLE else "refused"


_SAME, _OTHER_SIZE, _PLAIN, _NOT_INSTALLED = "no pixel differs", "another size", "plain to see", "not installed here"
_NOTES = (_SAME, _OTHER_SIZE, _PLAIN, _NOT_INSTALLED)


@dataclass
class Row:
    """One fault (or oddity) in one state: an example, and how many there are."""

    name: str
    parameters: str
    odd: bool
    record: SampleRecord
    count: int = 1
    views: dict[str, View] = field(default_factory=dict)
    """By column title."""
    before: list[Piece] = field(default_factory=list)
    """The sample's text before the damage, in pieces; empty if it has none."""
    after: list[Piece] = field(default_factory=list)
    """The stored text in pieces; empty if no reader finds any."""
    after_words: str = ""
    """Why there is no stored text."""

    @property
    def texts(self) -> list[tuple[str, list[Piece]]]:
        """The texts with their titles: one if nothing differs, none if the sample has none."""
        if not self.before:
            return []
        if self.before == self.after:
            return [("text", self.before)]
        return [("before", self.before), ("after", self.after or [Piece(self.after_words, False)])]

    @property
    def why(self) -> str:
        """The reason of the state in words."""
        if self.record.why:
            return self.record.why
        return f"whole, says {' and '.join(self.record.said)}" if self.record.said else ""


@dataclass(frozen=True)
class Sheet:
    """Everything that a contact sheet shows."""

    headline: str
    corpus: dict[str, Any]
    columns: tuple[str, ...]
    """The titles of the views, in order. Each row has all of them, or a placeholder."""
    rows: list[Row]

    @property
    def pictures(self) -> bool:
        """Whether it has any picture."""
        return any(view.picture is not None for row in self.rows for view in row.views.values())


def examples(where: Folder) -> list[Row]:
    """One row for each state of each fault and oddity: the first such sample, without its views.

    Raises:
        UserError: there is no manifest, or a line of it cannot be read.
    """
    found: dict[tuple[bool, str, str], Row] = {}
    for record in read_samples(where):
        struck = record.fault or record.oddity
        if struck is None:
            continue
        key = (record.fault is None, struck["fault"], record.state.value)
        if key in found:
            found[key].count += 1
        else:
            parameters = ", ".join(f"{name}={value}" for name, value in struck.items() if name != "fault")
            found[key] = Row(struck["fault"], parameters, record.fault is None, record)
    return [row for _, row in sorted(found.items(), key=lambda item: item[0])]


def sheet(address: str) -> Sheet:
    """The :func:`examples` of a corpus with what each reader shows of them, and their texts before and after.

    Raises:
        UserError: there is no corpus, or it was edited and cannot be read.
    """
    where = folder(address)
    recipe = read_recipe(where)
    kind = kind_of(recipe.kind)
    rows = examples(where)
    texts = None if kind.one_file_a_sample else StoredTexts(where, kind, recipe, _groups(where, rows))
    for row in rows:
        row.views = dict(_views(where, kind, recipe, row.record))
        if texts is not None:
            text, row.after_words = texts.after(row.record)
            row.before, row.after = differences(texts.before(row.record), text or "")
    corpus = read_corpus(where)
    columns = dict.fromkeys(title for title in _ORDER if any(title in row.views for row in rows))
    columns.update(dict.fromkeys(title for row in rows for title in row.views))
    return Sheet(headline(address, corpus), corpus, tuple(columns), rows)


_BEFORE, _AFTER, _LENIENT, _OPENCV, _DIFFERENCE = "undamaged", "Pillow", "Pillow, lenient", "OpenCV", "difference"
_ORDER = (_BEFORE, _AFTER, _LENIENT, _OPENCV, _DIFFERENCE)


def _groups(where: Folder, rows: list[Row]) -> dict[str, list[int]]:
    """For the files of the rows: the sizes of their row groups, from the manifest."""
    wanted = {row.record.path for row in rows}
    sizes: dict[str, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    for record in read_samples(where):
        if record.path in wanted:
            sizes[record.path][record.row_group or 0] += 1
    # A group without a row has no record, but it still counts among the others.
    return {path: [groups[number] for number in range(max(groups) + 1)] for path, groups in sizes.items()}


def _views(where: Folder, kind: CorpusKind, recipe: Recipe, record: SampleRecord) -> Iterator[tuple[str, View]]:
    if kind.one_file_a_sample:
        data = where.look(record.path)[1]
        yield from _pictures(record, kind.undamaged(recipe, record.id), data)
        return
    if recipe.kind == "webdataset":
        before = StoredTexts(where, kind, recipe, {}).picture(record)
        yield from _pictures(record, before, _member(where, record))
    for reader, words in record.said.items():
        if reader not in ("pillow", "opencv"):  # whose pictures are shown
            yield reader, View(None, words)


def _pictures(record: SampleRecord, undamaged: bytes, data: bytes | None) -> Iterator[tuple[str, View]]:
    before, words = _decoded(undamaged, strict=True)
    yield _BEFORE, _view(before, words)
    if data is None:
        return
    strict, words = _decoded(data, strict=True)
    yield _AFTER, _view(strict, words)
    lenient = opened = None
    if record.said.get("pillow", WHOLE) != WHOLE:
        lenient, words = _decoded(data, strict=False)
        yield _LENIENT, _view(lenient, words)
    if "opencv" in record.said:
        opened, words = _by_opencv(data)
        yield _OPENCV, _view(opened, words)
    after = strict or lenient or opened
    if before is not None and after is not None:
        yield _DIFFERENCE, _difference(before, after)


def _difference(before: Image.Image, after: Image.Image) -> View:
    """Where two similar pictures differ: the brighter, the larger the difference; in words if there is nothing to see."""
    from PIL import ImageChops, ImageStat

    if before.size != after.size:
        return View(None, _OTHER_SIZE)
    between = ImageChops.difference(before, after)
    if between.getbbox() is None:
        return View(None, _SAME)
    red, green, blue = between.split()
    grey = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    if ImageStat.Stat(thumb(grey)).mean[0] > _ALIKE:
        return View(None, _PLAIN)
    return View(thumb(grey.point(lambda level: min(255, 48 + _LOUDER * level) if level else 0)))


def _member(where: Folder, record: SampleRecord) -> bytes | None:
    """The picture among the sample's members in a tar shard, found by the most tolerant reader."""
    _, data = where.look(record.path)
    if not record.members or data is None:
        return None
    given = tarfiles.READERS["tarfile-resync"](data, record.path.endswith(".gz"))
    keys = {tarfiles.split(member)[0] for member in record.members}
    pictures = [
        content
        for key, members in given.groups
        if key in keys
        for field, content in members
        if field in ("jpg", "png")
    ]
    return pictures[0] if pictures else None


def _decoded(data: bytes, strict: bool) -> tuple[Image.Image | None, str]:
    """The picture in RGB; or None, and the error in words."""
    from PIL import Image, ImageFile

    from .truth import refusal

    before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, not strict
    try:
        with Image.open(io.BytesIO(data)) as picture:
            return _rgb(picture), ""
    except Exception as error:  # noqa: BLE001 - the decoder's error is what is shown
        return None, refusal(error)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def _by_opencv(data: bytes) -> tuple[Image.Image | None, str]:
    from PIL import Image

    from .truth import refusal, with_opencv

    try:
        pixels = with_opencv(data)
    except ImportError:
        return None, _NOT_INSTALLED
    except Exception as error:  # noqa: BLE001 - the decoder's error is what is shown
        return None, refusal(error)
    if pixels.ndim == 3:
        pixels = pixels[..., [2, 1, 0, 3][: pixels.shape[2]]].copy()
    return _rgb(Image.fromarray(pixels)), ""


def _view(picture: Image.Image | None, words: str) -> View:
    return View(None, words) if picture is None else View(thumb(picture), f"{picture.width} × {picture.height}")


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I"):
        picture = picture.point(lambda level: level / 256).convert("L")
    return picture.convert("RGB")


def thumb(picture: Image.Image) -> Image.Image:
    """The picture, resized so that its longer side is :data:`THUMB`."""
    from PIL import Image

    scale = THUMB / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST)


def headline(address: str, corpus: dict[str, Any]) -> str:
    """Address, samples by state, and seed, in one line."""
    counts = corpus["counts"]
    states = ", ".join(f"{count} {state}" for state, count in counts["state"].items())
    return f"{address}: {counts['samples']} samples ({states}), seed {corpus['seed']}"
