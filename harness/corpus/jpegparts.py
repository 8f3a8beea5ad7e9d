"""The structural places of a JPEG and a PNG file, which faults damage."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

JPEG_PARTS = {
    "app": range(0xE0, 0xF0),
    "dqt": range(0xDB, 0xDC),
    "sof": (0xC0, 0xC1, 0xC2, 0xC9, 0xCA),
    "dht": range(0xC4, 0xC5),
    "sos": range(0xDA, 0xDB),
}
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


_NAMES = [
    next((name for name, markers in JPEG_PARTS.items() if marker in markers), f"{marker:02x}") for marker in range(256)
]


class Part(NamedTuple):
    """One marker segment or chunk: ``data[start:stop]``, including the marker or length before it."""

    name: str
    start: int
    stop: int


def jpeg_parts(data: bytes) -> list[Part]:
    """The marker segments up to the (first) scan, in order, without the scan's own data."""
    parts, at = [], 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        name = _NAMES[data[at + 1]]
        stop = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        parts.append(Part(name, at, stop))
        at = stop
        if name == "sos":
            break
    return parts


def jpeg_part(data: bytes, name: str) -> Part | None:
    """The first segment of that name, or None."""
    return next((part for part in jpeg_parts(data) if part.name == name), None)


def with_segment(data: bytes, marker: int, body: bytes) -> bytes:
    """The JPEG with one more marker segment, after those that name its format; the body has at most 65,533 bytes."""
    at = next((part.start for part in jpeg_parts(data) if part.name != "app"), 2)
    return b"".join((data[:at], bytes((0xFF, marker)), (len(body) + 2).to_bytes(2, "big"), body, data[at:]))


def jpeg_scan(data: bytes) -> tuple[int, int]:
    """The offsets where entropy-coded data begins, and where it ends (at the end-of-image marker or the end of the file)."""
    sos = jpeg_part(data, "sos")
    end = data.rfind(b"\xff\xd9")
    start = sos.stop if sos else min(2, len(data))
    return start, end if end > start else len(data)


_NO_DATA = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""A marker. Entropy-coded data cannot contain one, except restart markers."""


def jpeg_is_complete(data: bytes) -> bool:
    """Whether a baseline JPEG has every part, and one scan that continues to an end marker at the file's end."""
    if not data.startswith(b"\xff\xd8"):
        return False
    parts = jpeg_parts(data)
    if {"dqt", "sof", "dht", "sos"} - {part.name for part in parts} or parts[-1].name != "sos":
        return False
    marker = _NO_DATA.search(data, parts[-1].stop)
    return marker is not None and marker.start() == len(data) - 2 and data.endswith(b"\xff\xd9")


def png_is_complete(data: bytes) -> bool:
    """Whether a PNG has every part, each with a correct checksum, up to an end chunk at the file's end."""
    if not data.startswith(PNG_SIGNATURE):
        return False
    chunks = list(png_chunks(data))
    names = [chunk.name for chunk in chunks]
    return (
        names[:1] == ["IHDR"]
        and "IDAT" in names
        and names[-1] == "IEND"
        and chunks[-1].stop == len(data)
        and all(png_crc(data[part.start + 4 : part.stop - 4]) == data[part.stop - 4 : part.stop] for part in chunks)
    )


def png_chunks(data: bytes) -> Iterator[Part]:
    """Every chunk: length, type, body and checksum."""
    at = len(PNG_SIGNATURE)
    while at + 12 <= len(data):
        stop = at + 12 + int.from_bytes(data[at : at + 4], "big")
        yield Part(data[at + 4 : at + 8].decode("latin-1"), at, min(stop, len(data)))
        at = stop


def png_chunk(data: bytes, name: str) -> Part | None:
    """The first chunk of that type, or None."""
    return next((part for part in png_chunks(data) if part.name == name), None)


def png_crc(data: bytes) -> bytes:
    """The checksum of a chunk's type and body."""
    return zlib.crc32(data).to_bytes(4, "big")


def payload(data: bytes) -> tuple[int, int]:
    """Where the picture's coded content is: a JPEG's scan, a PNG's first IDAT body, otherwise all after the first tenth."""
    if data.startswith(PNG_SIGNATURE):
        chunk = png_chunk(data, "IDAT")
        return (chunk.start + 8, chunk.stop - 4) if chunk else (len(data), len(data))
    if data.startswith(b"\xff\xd8"):
        return jpeg_scan(data)
    return len(data) // 10, len(data)
