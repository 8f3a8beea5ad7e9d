"""The code of the id mark: where its cells are, and which bits they contain.

The mark is drawn on a grid of 32 × 32 cells over the whole picture, so it scales with the picture. It has a strip of 24
× 4 cells near the top and another near the bottom, both between 1/8 and 7/8 of the width, so a crop of a tenth of the
picture at every side does not reach it. A strip has 48 bits. Each bit is a light cell above a dark one or the reverse,
so no threshold is needed: normalising, grey and brightness change nothing, and flat grey gives no reading. The bits are
a scrambled id (24) and its checksum (24), masked differently in each strip. A row of alternating cells in the last
corner that a decoder reaches (bottom right) shows whether the last percent of the data was lost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import HarnessError

GRID = 32
"""Cells across and down. At 64 × 64 pixels a cell is 2 pixels wide, the minimum that survives any phase of
resampling."""
COLUMNS = 24
FIRST_COLUMN = 4
STRIP_ROWS = 4
STRIPS = (4, 24)
"""First cell row of the top and of the bottom strip."""
TAIL_ROW, TAIL_FIRST = 31, 24
MAX_ID = (1 << 24) - 1
SMALLEST = 64
"""The minimum width and height in pixels of a picture with a mark."""

DARK, LIGHT = 32, 224
"""Levels of 255; away from the limits, so that ringing is not clipped."""
_SCRAMBLE = 0x9E3779 | 1  # odd, so multiplying permutes the 24-bit numbers: neighbouring ids differ in many cells
_UNSCRAMBLE = pow(_SCRAMBLE, -1, 1 << 24)
ALL = (1 << 24) - 1
"""A word in which all bits are set."""
_MASKS = (0x5A3C96, 0xC3695F)  # one for each strip; they also make mirrored and inverted readings invalid
POWERS = 1 << np.arange(COLUMNS - 1, -1, -1, dtype=np.int64)
"""The value of each bit of a word, first column first."""


def _crc24(word: int) -> int:
    crc = 0xB704CE
    for shift in (16, 8, 0):
        crc = ((crc << 8) & ALL) ^ _CRC_TABLE[(crc >> 16) ^ (word >> shift & 0xFF)]
    return crc


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)  # the CRC-24 of RFC 4880
        table.append(crc & ALL)
    return table


_CRC_TABLE = _crc_table()


def mark_words(sample: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two 24-bit words of the top and of the bottom strip; a set bit is a light cell above a dark one.

    Raises:
        HarnessError: the id does not fit into 24 bits.
    """
    if not 0 <= sample <= MAX_ID:
        raise HarnessError(f"a picture's mark can have ids from 0 to {MAX_ID}, not {sample}")
    word = (sample * _SCRAMBLE) & ALL
    check = _crc24(word)
    return (word ^ _MASKS[0], check ^ _MASKS[0]), (word ^ _MASKS[1], check ^ _MASKS[1])


def unword(first: int, second: int, strip: int) -> int | None:
    """The id in two words of a strip (0: top, 1: bottom); None: their checksum does not match."""
    word = first ^ _MASKS[strip]
    return (word * _UNSCRAMBLE) & ALL if _crc24(word) == second ^ _MASKS[strip] else None


def edges(pixels: int) -> npt.NDArray[np.intp]:
    """The 33 pixel positions that separate the cells of an axis with this many pixels."""
    return (np.arange(GRID + 1) * pixels + GRID // 2) // GRID
