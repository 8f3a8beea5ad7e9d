"""Gzip streams whose bytes depend only on their content, and reading what is left of a truncated one."""

from __future__ import annotations

import gzip
import zlib

_LEVEL = 6


def compress(data: bytes) -> bytes:
    """One gzip member without name and time."""
    return gzip.compress(data, compresslevel=_LEVEL, mtime=0)


def decompress(data: bytes) -> tuple[bytes, Exception | None]:
    """Everything that can be read from the stream, and the error at its end; None: it ended correctly, or is empty."""
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
