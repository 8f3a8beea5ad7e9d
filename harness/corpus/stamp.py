"""Many JPEG pictures from one: only the bits of the id mark are replaced in the entropy-coded scan.

The mark's cells are flat. If a cell is a whole number of 8 × 8 blocks, its code is known without any transform: the
difference of two levels, and an end of block. The result is byte for byte what libjpeg writes for the same pixels with
the same quality (a test compares them), at a tenth of the cost.
"""

from __future__ import annotations

import functools
import io
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import HarnessError
from ..identity.mark_code import COLUMNS, DARK, GRID, LIGHT, mark_words
from ..identity.marks import draw_mark

_GROUP = 6  # cells whose code is looked up at once
_GROUP_BITS = (1 << _GROUP) - 1
_GROUPS: dict[tuple[int, int, int], dict[tuple[int, int, int, int], str]] = {}
"""The cached codes, by quality and blocks in a cell; the codes depend on nothing else."""
_TEMPLATE_ID = 0x555555


def can_stamp(size: tuple[int, int]) -> bool:
    """Whether the mark's cells are whole blocks in pictures of this width and height."""
    return all(pixels % (8 * GRID) == 0 and pixels > 0 for pixels in size)


def encode_jpeg(pixels: npt.NDArray[np.uint8], quality: int) -> bytes:
    """A baseline JPEG with 4:2:0 chroma and the standard Huffman tables, as Pillow writes it."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality, subsampling=2)
    return out.getvalue()


class _Laid(NamedTuple):
    """A piece of a scan, split at byte boundaries."""

    first: int
    """The bits that complete the byte in which it begins."""
    whole: bytes
    """Its whole bytes, as they are in the file."""
    last: int
    last_bits: int


class Stamp:
    """One picture, ready to be written with any id.

    Args:
        pixels: ``(height, width, 3)`` uint8 of a size that :func:`can_stamp` accepts; it is overwritten.
        quality: of the JPEG, 1-100.

    Raises:
        HarnessError: the encoder does not code flat cells as expected.
    """

    def __init__(self, pixels: npt.NDArray[np.uint8], quality: int) -> None:
        self._blocks = (pixels.shape[0] // GRID // 8, pixels.shape[1] // GRID // 8)
        draw_mark(pixels, _TEMPLATE_ID)
        self.template = template = encode_jpeg(pixels, quality)
        """The file with an arbitrary id."""
        self._read_header(template)
        bits = _as_text(template[len(self._head) : -2].replace(b"\xff\x00", b"\xff"))
        self._still: list[tuple[int, int]] = []
        self._groups = _GROUPS.setdefault((quality, *self._blocks), {})
        done = 0
        for run in self._runs(_TEMPLATE_ID):
            found = bits.find(run, done)
            if found < 0:
                raise HarnessError("the JPEG encoder codes the id mark's flat cells in an unknown way")
            self._still.append((int(bits[done:found] or "0", 2), found - done))
            done = found + len(run)
        # The scan ends with the chroma's end of block, 00, so any ones that follow are the padding of the last byte.
        tail = bits[done:].rstrip("1")
        self._still.append((int(tail, 2), len(tail)))
        # The piece between the strips is by far the longest. It is always the same, except for the bit where it begins.
        self._middle = max(range(len(self._still)), key=lambda piece: self._still[piece][1])
        self._laid: dict[int, _Laid] = {}

    def with_id(self, sample: int) -> bytes:
        """The JPEG file with the mark of ``sample``."""
        runs, still = self._runs(sample), self._still
        value = bits = 0
        for (piece, length), run in zip(still[: self._middle], runs):
            value = ((value << length) | piece) << len(run) | int(run, 2)
            bits += length + len(run)
        if -bits % 8 not in self._laid:
            self._laid[-bits % 8] = _laid(*still[self._middle], -bits % 8)
        laid = self._laid[-bits % 8]
        above = _stuffed(value << (-bits % 8) | laid.first, bits + -bits % 8)
        value, bits = laid.last, laid.last_bits
        for run, (piece, length) in zip(runs[self._middle :], still[self._middle + 1 :]):
            value = ((value << len(run)) | int(run, 2)) << length | piece
            bits += len(run) + length
        padding = -bits % 8
        below = _stuffed(value << padding | ((1 << padding) - 1), bits + padding)
        return b"".join((self._head, above, laid.whole, below, b"\xff\xd9"))

    def _runs(self, sample: int) -> list[str]:
        """The bits of the mark's units, one run for each row of units in each strip, in scan order."""
        down = self._blocks[0]
        groups = self._groups
        runs = []
        for words in mark_words(sample):
            for word in words:
                for row in range(down):
                    # A row of units is two rows of blocks, each in the upper cells of the pair (0) or the lower (1).
                    upper, lower = 2 * row // down, (2 * row + 1) // down
                    light, run = 1, []  # the previous unit, which is quiet, is light
                    for shift in range(COLUMNS - _GROUP, -1, -_GROUP):
                        key = (upper, lower, light, word >> shift & _GROUP_BITS)
                        if key not in groups:
                            groups[key] = self._group(*key)
                        run.append(groups[key])
                        light = (word >> shift & 1) ^ lower
                    # The quiet unit after it belongs to the run: it is coded as a difference from the last block.
                    run.append(self._codes[16 * light + 15])
                    runs.append("".join(run))
        return runs

    def _group(self, upper: int, lower: int, light: int, word: int) -> str:
        """The bits of the units of a few cells, after a light or a dark block."""
        bits = [word >> shift & 1 for shift in range(_GROUP - 1, -1, -1) for _ in range(self._blocks[1])]
        code = ""
        for left, right in zip(bits[::2], bits[1::2]):
            unit = (left ^ upper) << 3 | (right ^ upper) << 2 | (left ^ lower) << 1 | (right ^ lower)
            code += self._codes[16 * light + unit]
            light = right ^ lower
        return code

    def _read_header(self, jpeg: bytes) -> None:
        """Store the bytes before the scan, and the codes of every unit of flat cells after a light or a dark block."""
        at = 2
        while jpeg[at + 1] != 0xDA:
            at += 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
        self._head = jpeg[: at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")]
        self._codes = _codes_of(self._head)


@functools.lru_cache(64)
def _codes_of(head: bytes) -> list[str]:
    """The codes of every unit of flat cells after a light or a dark block, in a JPEG with these bytes before its scan."""
    at, step, tables = 2, 0, {}
    while at < len(head):
        marker, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4], "big")
        body = head[at + 4 : at + 2 + length]
        if marker == 0xDB and body[0] == 0:
            step = body[1]  # the DC step of luma; the first table of the first segment
        elif marker == 0xC4:
            tables.update(_huffman(body))
        at += 2 + length
    levels = {light: _quantised(LIGHT if light else DARK, step) for light in (0, 1)}
    end, chroma = tables[0x10][0], tables[0x01][0] + tables[0x11][0]
    codes = []
    for before in (0, 1):
        for unit in range(16):
            code, last = "", before
            for light in (unit >> 3 & 1, unit >> 2 & 1, unit >> 1 & 1, unit & 1):
                code += _difference(levels[light] - levels[last], tables[0x00]) + end
                last = light
            codes.append(code + 2 * chroma)
    return codes


def _laid(value: int, bits: int, free: int) -> _Laid:
    """A piece of a scan that begins where a byte has ``free`` bits left."""
    last_bits = (bits - free) % 8
    whole = (value >> last_bits) & ((1 << (bits - free - last_bits)) - 1)
    return _Laid(
        value >> (bits - free),
        _stuffed(whole, bits - free - last_bits),
        value & ((1 << last_bits) - 1),
        last_bits,
    )


def _stuffed(value: int, bits: int) -> bytes:
    """Bits as bytes of a scan, where a zero byte follows each 0xFF byte."""
    return value.to_bytes(bits // 8, "big").replace(b"\xff", b"\xff\x00")


def _quantised(level: int, step: int) -> int:
    """The DC coefficient of a flat block of that level, rounded as libjpeg's integer transform does."""
    size = (8 * abs(level - 128) + step // 2) // step
    return size if level >= 128 else -size


def _difference(value: int, table: dict[int, str]) -> str:
    size = abs(value).bit_length()
    extra = value if value >= 0 else value + (1 << size) - 1
    return table[size] + (format(extra, f"0{size}b") if size else "")


def _huffman(body: bytes) -> dict[int, dict[int, str]]:
    """The codes of a DHT segment: class and number of the table, then symbol, then its bits as text."""
    tables: dict[int, dict[int, str]] = {}
    at = 0
    while at < len(body):
        codes: dict[int, str] = {}
        counts, symbols = body[at + 1 : at + 17], iter(body[at + 17 :])
        code = 0
        for length, count in enumerate(counts, start=1):
            for _ in range(count):
                codes[next(symbols)] = format(code, f"0{length}b")
                code += 1
            code <<= 1
        tables[body[at]] = codes
        at += 17 + sum(counts)
    return tables


def _as_text(data: bytes) -> str:
    return format(int.from_bytes(data, "big"), f"0{8 * len(data)}b")
