"""Gzip streams whose bytes depend on their content alone, and what is left of one that was cut."""

from __future__ import annotations

import gzip
import zlib

_LEVEL = 6


def compress(data: bytes) -> bytes:
    """One gzip member without name and time."""
    return gzip.compress(data, compresslevel=_LEVEL, mtime=0)


def decompress(data: bytes) -> tuple[bytes, Exception | None]:
    """Everything that can be had from the stream, and the error at its end; None: it ended as it should, or is empty."""
    found = bytearray()
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            found += stream.decompress(data)
            found += stream.flush()
        except zlib.error as error:
            return bytes(found), error
        if not stream.eof:
            return bytes(found), EOFError("Compressed file ended before the end-of-stream marker was reached")
        data = stream.unused_data
    return bytes(found), None
