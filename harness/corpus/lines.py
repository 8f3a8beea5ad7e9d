"""Samples as lines of JSON: what a fault of lines may do, and what readers say about the resulting file."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import gzipped
from .declared import ROWS
from .layout import StoredFault
from .oracles import NOTHING, WHOLE, lossy, raises


class LineFault(StoredFault):
    """Base class of the faults of lines."""

    newline = True
    """Whether the line still ends with a newline; otherwise it runs into the next one."""

    def change_line(self, line: bytes) -> bytes:
        """The line, without its newline, as it is stored."""
        return line

    def change_text(self, text: bytes) -> bytes:
        """All lines of the file, before they are compressed."""
        return text


@dataclass(frozen=True)
class Line:
    """One sample's line."""

    wanted: Mapping[str, Any]
    """The undamaged object."""
    start: int
    stop: int
    """Where its bytes are in the text of the file, without the newline."""
    plain: bool
    """Whether nothing happened to it: neither damage nor an odd way of writing."""


Found = list[tuple[int, bytes]]
"""Lines as a reader finds them: the offset of each in the text, and its bytes without the line's end."""


def judge(data: bytes, compressed: bool, lines: Sequence[Line]) -> list[dict[str, str]]:
    """What each reference reader says about each sample: Python's ``json`` line by line, and ``pyarrow.json``."""
    said: list[dict[str, str]] = [{} for _ in lines]
    for name, read, parse in (("json", _read_lines, _by_json), ("pyarrow.json", _read_all, _by_pyarrow)):
        found, error = read(data, compressed)
        words = [NOTHING if error is None else raises(error)] * len(lines)
        covered = _covered(found, lines)
        for given, places in zip(parse([text for _, text in found], _plain(found, covered, lines)), covered):
            for place in places:
                words[place] = given if isinstance(given, str) else _verdict(given, lines[place].wanted)
        for place, word in enumerate(words):
            said[place][name] = word
    return said


def _covered(found: Found, lines: Sequence[Line]) -> list[range]:
    """The samples whose bytes are in each line that was found: more than one where a newline was lost."""
    covered = []
    first = 0
    for start, text in found:
        while first < len(lines) and lines[first].stop <= start:
            first += 1
        last = first
        while last < len(lines) and lines[last].start < start + len(text):
            last += 1
        covered.append(range(first, last))
    return covered


def _plain(found: Found, covered: Sequence[range], lines: Sequence[Line]) -> list[bool]:
    """For each line that was found: whether it is exactly one undamaged sample."""
    return [
        len(places) == 1
        and lines[places[0]].plain
        and (start, start + len(text)) == (lines[places[0]].start, lines[places[0]].stop)
        for (start, text), places in zip(found, covered)
    ]


def _split(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    at = 0
    for piece in pieces:
        if text := piece.rstrip(b"\r\n"):
            yield at, text
        at += len(piece)


def _read_lines(data: bytes, compressed: bool) -> tuple[Found, Exception | None]:
    """Read as a loop over the open file does.

    The buffering of ``gzip`` decides what can be read of a truncated stream.
    """
    found: Found = []
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) if compressed else io.BytesIO(data) as file:
            found.extend(_split(file))
    except (OSError, EOFError, zlib.error) as error:
        return found, error
    return found, None


def _read_all(data: bytes, compressed: bool) -> tuple[Found, Exception | None]:
    """Everything that can be read from the stream, even if it was cut."""
    text, error = gzipped.decompress(data) if compressed else (data, None)
    return list(_split(io.BytesIO(text))), error


def _by_json(texts: Sequence[bytes], plain: Sequence[bool]) -> Iterator[dict[str, Any] | str]:
    for text in texts:
        try:
            value = json.loads(text.decode("utf-8"), parse_constant=_forbidden)
        except (ValueError, RecursionError) as error:
            yield raises(error)
        else:
            yield value if isinstance(value, dict) else raises("declared: it is no object")


def _forbidden(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _by_pyarrow(texts: Sequence[bytes], plain: Sequence[bool]) -> Iterator[dict[str, Any] | str]:
    """All plain lines at once, as users read them, and each other line separately."""
    at_once: list[dict[str, Any]] = []
    together = [text for text, is_plain in zip(texts, plain) if is_plain]
    if together:
        at_once = _pyarrow_rows(b"\n".join(together))
    rows = iter(at_once)
    for text, is_plain in zip(texts, plain):
        if is_plain:
            yield next(rows, NOTHING)
            continue
        try:
            alone = _pyarrow_rows(text)
            yield alone[0] if len(alone) == 1 else raises(f"declared: it is {len(alone)} objects")
        except Exception as error:  # noqa: BLE001 - any error means that the reader refuses it
            yield raises(error)


def _pyarrow_rows(text: bytes) -> list[dict[str, Any]]:
    import pyarrow.json

    options = pyarrow.json.ParseOptions(explicit_schema=ROWS.schema, unexpected_field_behavior="ignore")
    rows: list[dict[str, Any]] = pyarrow.json.read_json(io.BytesIO(text), parse_options=options).to_pylist()
    return rows


def _verdict(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    if row == wanted:
        return WHOLE
    problem = ROWS.problem(row)
    if problem is not None:
        return raises(f"declared: {problem}")
    changed = [name for name in ROWS.types if row[name] != wanted[name]]
    return lossy(f"{', '.join(changed)} changed")


def into_text(line: bytes, inserted: bytes) -> bytes:
    """The line with bytes inserted into its text string, after the first mark."""
    at = line.index(b"] ", line.index(b'"text":"')) + 2
    return line[:at] + inserted + line[at:]
