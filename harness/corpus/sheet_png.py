"""The contact sheet as a PNG picture: a grid, a row for each fault, a column for each reader."""

from __future__ import annotations

import functools
import io
import textwrap
from collections.abc import Sequence
from typing import Any

from .show import COLOURS, THUMB, Row, Sheet, View
from .text_diff import Piece

_CELL = THUMB + 12  # pixels
_WHAT = 420
_TITLE, _LINE = 20, 16
_BELOW_STATE = 52  # from the top of a row to the first line below its state
_MARKS = {"before": "#ffd54f", "after": "#ffb3ad"}
_WORDS = {"whole": "#2e7d32", "refused": "#c62828", "note": "#555555", "absent": "#999999", "picture": "#555555"}


def png(sheet: Sheet) -> bytes:
    """The sheet as a PNG picture."""
    from PIL import Image, ImageDraw

    width = _WHAT + _CELL * max(4, len(sheet.columns))
    said = [_what(row) for row in sheet.rows]
    high = max([_CELL if sheet.pictures else 0, *(_BELOW_STATE - _TITLE + _LINE * len(lines) + 8 for lines in said)])
    layouts = [[(title, _lines(pieces, width - 110)) for title, pieces in row.texts] for row in sheet.rows]
    heights = [_TITLE + high + _LINE * sum(len(lines) for _, lines in texts) + 8 * bool(texts) for texts in layouts]
    picture = Image.new("RGB", (width, 48 + sum(heights) + 1), "white")
    pen = ImageDraw.Draw(picture)
    pen.text((10, 14), _latin(sheet.headline), fill="black", font=_font(15))
    top = 48
    for row, lines, texts, height in zip(sheet.rows, said, layouts, heights, strict=True):
        pen.line((0, top, width, top), fill="#bbbbbb")
        _describe(pen, row, lines, top)
        for number, title in enumerate(sheet.columns):
            left = _WHAT + number * _CELL
            pen.line((left, top, left, top + _TITLE + high), fill="#dddddd")
            pen.text((left + 6, top + 3), _latin(title), fill="#444444", font=_font(12))
            _cell(picture, pen, row.views.get(title, View()), left + 6, top + _TITLE, high - 12)
        y = top + _TITLE + high
        for title, written in texts:
            pen.text((10, y), title, fill="#444444", font=_font(12))
            for line in written:
                _draw(pen, line, 100, y, _MARKS.get(title, ""))
                y += _LINE
        top += height
    pen.line((0, top, width, top), fill="#bbbbbb")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _what(row: Row) -> list[str]:
    """Parameters, reason and path, wrapped into at most six lines."""
    return [line for text in (row.parameters, row.why, row.record.path) for line in textwrap.wrap(_latin(text), 62)][:6]


def _describe(pen: Any, row: Row, lines: Sequence[str], top: int) -> None:
    pen.text((10, top + 6), row.name, fill="black", font=_font(15))
    state = row.record.state.value
    pen.text((10, top + 28), f"{state} ({row.count})", fill=COLOURS[state], font=_font(15))
    for number, line in enumerate(lines):
        pen.text((10, top + _BELOW_STATE + _LINE * number), line, fill="#444444", font=_font(12))


def _cell(picture: Any, pen: Any, view: View, left: int, top: int, high: int) -> None:
    if view.picture is not None:
        picture.paste(view.picture, (left, top))
        return
    pen.rectangle((left, top, left + THUMB - 1, top + high - 1), outline="#cccccc")
    lines = textwrap.wrap(_latin(view.words or "-"), 19)[: high // _LINE]
    for number, line in enumerate(lines):
        pen.text((left + 6, top + 6 + _LINE * number), line, fill=_WORDS[view.kind], font=_font(12))


def _lines(pieces: Sequence[Piece], width: int) -> list[list[Piece]]:
    lines: list[list[Piece]] = [[]]
    at = 0.0
    for text, differs in pieces:
        for letter in _latin(text):
            wide = _wide(letter)
            if at + wide > width:
                lines.append([])
                at = 0.0
            if lines[-1] and lines[-1][-1].differs == differs:
                lines[-1][-1] = Piece(lines[-1][-1].text + letter, differs)
            else:
                lines[-1].append(Piece(letter, differs))
            at += wide
    return lines


def _draw(pen: Any, line: Sequence[Piece], left: float, top: int, mark: str) -> None:
    for text, differs in line:
        wide = sum(map(_wide, text))
        if differs:
            pen.rectangle((left, top, left + wide, top + _LINE - 2), fill=mark)
        at = left
        for letter in text:  # one by one: kerning would shift a letter away from its mark
            pen.text((at, top), letter, fill="black", font=_font(12))
            at += _wide(letter)
        left += wide


@functools.lru_cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=512)
def _wide(letter: str) -> float:
    return float(_font(12).getlength(letter))


def _latin(text: str) -> str:
    """The built-in font has only Latin letters."""
    return text.replace("…", "...").encode("latin-1", "replace").decode("latin-1")
