"""The contact sheet: fixed columns, where pictures differ, texts before and after the damage, as a page and as a grid."""

from __future__ import annotations

import html.parser
import io
from pathlib import Path

import pytest
from badbatch.harness.corpus.sheet_html import html as page_of
from badbatch.harness.corpus.sheet_png import png
from badbatch.harness.corpus.show import Row, Sheet, sheet
from badbatch.harness.corpus.text_diff import Piece, differences
from PIL import Image

GOLDEN = Path(__file__).resolve().parents[1] / "fixtures" / "golden"


@pytest.fixture(scope="module")
def pictures() -> Sheet:
    return sheet(str(GOLDEN / "imagefolder"))


@pytest.fixture(scope="module")
def lines() -> Sheet:
    return sheet(str(GOLDEN / "jsonl"))


def row(found: Sheet, name: str) -> Row:
    return next(row for row in found.rows if row.name == name)


def text(pieces: list[Piece]) -> str:
    """A text with what differs in brackets."""
    return "".join(f"<{piece.text}>" if piece.differs else piece.text for piece in pieces)


def test_the_difference_of_pictures_that_look_alike_is_shown(pictures: Sheet) -> None:
    """Flipped bits in the scan leave a picture that looks the same: the difference is lit where they changed it, and dark elsewhere."""
    between = row(pictures, "flipped-scan-bits").views["difference"].picture
    assert between is not None
    low, high = between.convert("L").getextrema()
    assert (low, high > 40) == (0, True)
    assert row(pictures, "jpeg-cut-end").views["difference"].words == "no pixel differs"
    assert row(pictures, "jpeg-cut-scan").views["difference"].words == "plain to see"
    assert "difference" not in row(pictures, "all-zeros").views  # there is no picture to compare


def test_columns_are_the_same_in_every_row(pictures: Sheet) -> None:
    """On the page each row has every column, and a placeholder where a reader had nothing to show."""
    assert pictures.columns[:2] == ("undamaged", "Pillow") and pictures.columns[-1] == "difference"
    page = page_of(pictures)
    assert page.count("<figure>") == len(pictures.rows) * len(pictures.columns)
    assert page.count('class="box words absent"') == sum(
        column not in row.views for row in pictures.rows for column in pictures.columns
    )


@pytest.mark.parametrize(
    ("kind", "fault", "before", "after"),
    [
        ("jsonl", "control-character", "[2] ", "[2] <\\x01>"),
        ("jsonl", "cut-line", "<1044]]}>", "1043,<10>"),
        ("jsonl", "byte-order-mark", '{"id":5', '<\\ufeff>{"id":5'),
        ("parquet", "null-in-list", "", "<null"),
        ("windows", "infinite-value", "<3.96875>", "<-Infinity>"),
        ("webdataset", "missing-member", "<jpg: 1,885 bytes", "00000015.json"),
    ],
)
def test_texts_before_and_after_with_the_damage_marked(kind: str, fault: str, before: str, after: str) -> None:
    """Of rows, lines and members both texts are shown, and what differs is marked in each."""
    damaged = row(sheet(str(GOLDEN / kind)), fault)
    assert [title for title, _ in damaged.texts] == ["before", "after"]
    assert before in text(damaged.before)
    assert after in text(damaged.after)
    assert any(piece.differs for piece in [*damaged.before, *damaged.after])


def test_what_no_reader_finds_is_described_in_words(lines: Sheet) -> None:
    """The line of an empty file is marked as missing, with the reason beside it."""
    gone = row(lines, "empty-file")
    assert gone.before and all(piece.differs for piece in gone.before)
    assert (gone.after, gone.after_words) == ([], "nothing")


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "windows", "webdataset"])
def test_a_sample_that_is_good_has_its_text(kind: str) -> None:
    """Legal oddities are read back: none of them is reported as lost, also after an empty row group."""
    odd = [found for found in sheet(str(GOLDEN / kind)).rows if found.odd]
    assert odd and all(found.after for found in odd)


def test_long_texts_are_cut_around_the_difference() -> None:
    """Both texts keep the same letters around a difference; a long difference is cut, and says how much is left out."""
    before, after = differences("a " * 250 + "one" + " b" * 250, "a " * 250 + " b" * 250)
    assert text(before) == "…" + "a " * 20 + "<one>" + " b" * 20 + "…"
    assert text(after) == "…" + "a " * 20 + " b" * 20 + "…"
    _, long = differences("", "x" * 5_000_000)
    assert text(long) == "<" + "x" * 160 + "… (4,999,840 more)>"
    assert differences("same", "same") == ([Piece("same", False)], [Piece("same", False)])


def test_the_page_is_whole_and_safe(lines: Sheet) -> None:
    """The page marks the damage, closes its tags, and lets no control character of a sample through."""
    page = page_of(lines)
    opened: list[str] = []

    class Checks(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "br", "img"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Checks().feed(page)
    assert opened == []
    assert "<mark>\\x01</mark>" in page and "\x01" not in page and "\ufeff" not in page


def test_the_picture_is_a_grid(pictures: Sheet, lines: Sheet) -> None:
    """The PNG has a column for each reader in every row, and room for the texts below."""
    grid = Image.open(io.BytesIO(png(pictures)))
    assert grid.width == 420 + 140 * max(4, len(pictures.columns))
    left = 420 + 140 * pictures.columns.index("difference")
    assert grid.getpixel((left, 48 + 10)) == (221, 221, 221)  # the line between two columns
    assert grid.height >= 48 + (128 + 12) * len(pictures.rows)
    texts = Image.open(io.BytesIO(png(lines)))
    colours = {colour for _, colour in texts.getcolors(1 << 20) or []}
    assert {(255, 213, 79), (255, 179, 173)} <= colours  # marks of what was, and of what is
