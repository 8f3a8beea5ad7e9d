"""Two texts side by side: what differs between them, shortened to the parts worth reading."""

from __future__ import annotations

import difflib
import re
import string
from typing import NamedTuple

_EXACT = 1000  # letters that may differ for a comparison word by word: its time grows with their square
_WORD = 20  # letters of the longest word that is marked as a whole
_LETTERS = string.ascii_letters + string.digits
_KEPT = 40  # letters shown on either side of a difference
_MARKED = 160  # letters shown of a difference


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    differs: bool
    """Whether the other text has something else in its place, or nothing."""


def differences(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, printable, with long pieces shortened in the middle.

    >>> differences("one two", "one too")[1]
    [Piece(text='one ', differs=False), Piece(text='too', differs=True)]
    """
    if before == after:
        same = before if len(before) <= _MARKED else f"{before[:_MARKED]}…"
        return [Piece(_printable(same), False)], [Piece(_printable(same), False)]
    start = _common(before, after)
    start -= _inside_word(before[:start], before[start:], after[start:])
    stop = _common(before[start:][::-1], after[start:][::-1])
    ends = before[len(before) - stop :], before[start : len(before) - stop], after[start : len(after) - stop]
    stop -= _inside_word(*(end[::-1] for end in ends))
    middles = before[start : len(before) - stop], after[start : len(after) - stop]
    head, tail = before[:start], before[len(before) - stop :]
    left, right = _middle(*middles)
    return _readable(head, left, tail), _readable(head, right, tail)


def _common(one: str, other: str) -> int:
    """How many letters the common beginning of the texts has."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halving compares whole slices: a text may have millions of letters
        half = (low + high + 1) // 2
        low, high = (half, high) if one[:half] == other[:half] else (low, half - 1)
    return low


def _inside_word(common: str, *rests: str) -> int:
    """How many letters at the end of the common part belong to a word that continues: a whole word is marked."""
    end = common[-_WORD:]
    word = len(end) - len(end.rstrip(_LETTERS))
    return word if word < _WORD and any(rest[:1] in _LETTERS for rest in rests if rest) else 0


def _middle(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    if max(len(before), len(after)) > _EXACT:
        return [Piece(before, True)], [Piece(after, True)]
    left: list[Piece] = []
    right: list[Piece] = []
    one, other = (re.findall(r"\w+|\W", text) for text in (before, after))
    for kind, i, j, k, m in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        left.append(Piece("".join(one[i:j]), kind != "equal"))
        right.append(Piece("".join(other[k:m]), kind != "equal"))
    return left, right


def _readable(head: str, middle: list[Piece], tail: str) -> list[Piece]:
    """The pieces, with the same letters around a difference on both sides, also where one side has nothing."""
    pieces = [Piece(_cut(head, "", head[-_KEPT:]), False)]
    for text, differs in middle:
        rest = len(text) - _MARKED
        if differs:
            pieces.append(Piece(text if rest <= 0 else f"{text[:_MARKED]}… ({rest:,} more)", True))
        elif text:
            pieces.append(Piece(_cut(text, text[:_KEPT], text[-_KEPT:]), False))
    pieces.append(Piece(_cut(tail, tail[:_KEPT], ""), False))
    return [Piece(_printable(text), differs) for text, differs in pieces if text]


def _cut(text: str, start: str, stop: str) -> str:
    return text if len(text) <= 2 * _KEPT + 1 else f"{start}…{stop}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)
