"""A small encoder of arithmetic-coded JPEG (ITU-T T.81), which libraries can decode but hardly any can write.

It writes grey pictures, sequential, in one scan. It is slow, as it is plain Python: use it for a few oddities, not for
whole corpora.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# T.81 table D.3. For each state: the size of the less probable half, the next state after the less and after the more
# probable symbol, and x where the less probable symbol makes the two change places.
_TABLE = """
    5a1d 1 1 x, 2586 14 2, 1114 16 3, 080b 18 4, 03d8 20 5, 01da 23 6, 00e5 25 7, 006f 28 8, 0036 30 9, 001a 33 10,
    000d 35 11, 0006 9 12, 0003 10 13, 0001 12 13, 5a7f 15 15 x, 3f25 36 16, 2cf2 38 17, 207c 39 18, 17b9 40 19,
    1182 42 20, 0cef 43 21, 09a1 45 22, 072f 46 23, 055c 48 24, 0406 49 25, 0303 51 26, 0240 52 27, 01b1 54 28,
    0144 56 29, 00f5 57 30, 00b7 59 31, 008a 60 32, 0068 62 33, 004e 63 34, 003b 32 35, 002c 33 9, 5ae1 37 37 x,
    484c 64 38, 3a0d 65 39, 2ef1 67 40, 261f 68 41, 1f33 69 42, 19a8 70 43, 1518 72 44, 1177 73 45, 0e74 74 46,
    0bfb 75 47, 09f8 77 48, 0861 78 49, 0706 79 50, 05cd 48 51, 04de 50 52, 040f 50 53, 0363 51 54, 02d4 52 55,
    025c 53 56, 01f8 54 57, 01a4 55 58, 0160 56 59, 0125 57 60, 00f6 58 61, 00cb 59 62, 00ab 61 63, 008f 61 32,
    5b12 65 65 x, 4d04 80 66, 412c 81 67, 37d8 82 68, 2fe8 83 69, 293c 84 70, 2379 86 71, 1edf 87 72, 1aa9 87 73,
    174e 72 74, 1424 72 75, 119c 74 76, 0f6b 74 77, 0d51 75 78, 0bb6 77 79, 0a40 77 48, 5832 80 81 x, 4d1c 88 82,
    438e 89 83, 3bdd 90 84, 34ee 91 85, 2eae 92 86, 299a 93 87, 2516 86 71, 5570 88 89 x, 4ca9 95 90, 44d9 96 91,
    3e22 97 92, 3824 99 93, 32b4 99 94, 2e17 93 86, 56a8 95 96 x, 4f46 101 97, 47e5 102 98, 41cf 103 99,
    3c3d 104 100, 375e 99 93, 5231 105 102, 4c0f 106 103, 4639 107 104, 415e 103 99, 5627 105 106 x, 50e7 108 107,
    4b85 109 103, 5597 110 109, 504f 111 107, 5a10 110 111 x, 5522 112 109, 59eb 112 111 x
"""
_STATES = [
    (int(size, 16), int(less), int(more), bool(swap)) for size, less, more, *swap in map(str.split, _TABLE.split(","))
]
_EVEN = len(_STATES)
_STATES.append((0x5A1D, _EVEN, _EVEN, False))  # the sign of a coefficient: always one half

_QUANTISATION = """
16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99
"""  # T.81 table K.1, row by row: quality 50
_ZIGZAG = sorted(range(64), key=lambda at: (sum(at8 := divmod(at, 8)), at8[0] if sum(at8) % 2 else at8[1]))
_SPLIT = 5  # T.81's Kx: where the magnitudes of low frequencies end, in contexts


class _Coder:
    """The binary coder of T.81 annex D. A context is one entry of a list of [state, more probable symbol]."""

    def __init__(self) -> None:
        self._interval, self._code, self._shifts, self._stacked = 0x10000, 0, 11, 0
        self._out = bytearray(1)  # the byte before the first; a carry never reaches it

    def put(self, context: list[int], bit: int) -> None:
        """Code one decision in its context, and update the context."""
        size, less, more, swap = _STATES[context[0]]
        self._interval -= size
        if bit == context[1]:
            if self._interval >= 0x8000:
                return
            if self._interval < size:
                self._code += self._interval
                self._interval = size
            context[0] = more
        else:
            if self._interval >= size:
                self._code += self._interval
                self._interval = size
            if swap:
                context[1] = 1 - context[1]
            context[0] = less
        while self._interval < 0x8000:
            self._interval <<= 1
            self._code <<= 1
            self._shifts -= 1
            if not self._shifts:
                self._byte_out()
                self._shifts = 8

    def _byte_out(self) -> None:
        byte = self._code >> 19
        self._code &= 0x7FFFF
        if byte > 0xFF:  # a carry: it passes through the stacked bytes
            self._out[-1] += 1
            if self._out[-1] == 0xFF:
                self._out.append(0)
            self._out += bytes(self._stacked)
        elif byte == 0xFF:  # its value depends on a carry that may still come
            self._stacked += 1
            return
        else:
            self._out += b"\xff\x00" * self._stacked
        self._stacked = 0
        self._out.append(byte & 0xFF)
        if byte & 0xFF == 0xFF:
            self._out.append(0)

    def finish(self) -> bytes:
        """All bytes. The last ones are chosen to be zeros, which are left out."""
        last = (self._code + self._interval - 1) & ~0xFFFF
        self._code = last if last >= self._code else last + 0x8000
        for shift in (self._shifts, 8):
            self._code <<= shift
            self._byte_out()
        self._out += b"\xff\x00" * self._stacked
        data = bytes(self._out[1:]).rstrip(b"\x00")
        return data + b"\x00" if data.endswith(b"\xff") else data


def encode(grey: npt.NDArray[np.uint8]) -> bytes:
    """The JPEG file (SOF9) of a picture ``(height, width)``, at about Pillow's quality 50."""
    height, width = grey.shape
    steps = np.array(_QUANTISATION.split(), np.float64).reshape(8, 8)
    blocks = _quantised(grey, steps)
    table = bytes(int(step) for step in steps.ravel()[_ZIGZAG])
    frame = b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\x01\x01\x11\x00"
    parts = [
        b"\xff\xd8",
        _segment(0xE0, b"JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"),
        _segment(0xDB, b"\x00" + table),
        _segment(0xC9, frame),
        _segment(0xDA, b"\x01\x01\x00\x00\x3f\x00"),
        _scan(blocks),
        b"\xff\xd9",
    ]
    return b"".join(parts)


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body


def _quantised(grey: npt.NDArray[np.uint8], steps: npt.NDArray[np.float64]) -> list[list[int]]:
    """The coefficients of all blocks, each in zigzag order."""
    height, width = grey.shape
    padded = np.pad(grey.astype(np.float64) - 128, ((0, -height % 8), (0, -width % 8)), mode="edge")
    blocks = padded.reshape(padded.shape[0] // 8, 8, -1, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    angles = np.pi / 16 * np.outer(np.arange(8), 2 * np.arange(8) + 1)
    transform = np.cos(angles) * np.where(np.arange(8) == 0, np.sqrt(1 / 8), 0.5)[:, None]
    coefficients = np.rint(transform @ blocks @ transform.T / steps).astype(int)
    listed: list[list[int]] = coefficients.reshape(-1, 64)[:, _ZIGZAG].tolist()
    return listed


def _scan(blocks: list[list[int]]) -> bytes:
    """T.81 section F.1.4: each coefficient is a series of decisions, each in its own context."""
    coder = _Coder()
    direct = [[0, 0] for _ in range(64)]
    alternating = [[0, 0] for _ in range(256)]
    before, conditioning = 0, 0
    for block in blocks:
        conditioning = _difference(coder, direct, block[0] - before, conditioning)
        before = block[0]
        last = max((k for k in range(1, 64) if block[k]), default=0)
        k = 1
        while k <= last:
            coder.put(alternating[3 * (k - 1)], 0)  # not the end of the block
            while not block[k]:
                coder.put(alternating[3 * (k - 1) + 1], 0)
                k += 1
            coder.put(alternating[3 * (k - 1) + 1], 1)
            coder.put([_EVEN, 0], int(block[k] < 0))
            start = 3 * (k - 1) + 2
            _magnitude(coder, alternating, abs(block[k]) - 1, (start, start, 189 if k <= _SPLIT else 217))
            k += 1
        if last < 63:
            coder.put(alternating[3 * (k - 1)], 1)
    return coder.finish()


def _difference(coder: _Coder, contexts: list[list[int]], value: int, conditioning: int) -> int:
    """Code a DC difference, in contexts that depend on the one before. Return the number of the next contexts."""
    coder.put(contexts[conditioning], int(value != 0))
    if not value:
        return 0
    coder.put(contexts[conditioning + 1], int(value < 0))
    _magnitude(coder, contexts, abs(value) - 1, (conditioning + (3 if value < 0 else 2), 20, 21))
    large = abs(value) > 2  # the bounds L = 0 and U = 1, as without a DAC segment
    return (8 if value < 0 else 4) + (8 if large else 0)


def _magnitude(coder: _Coder, contexts: list[list[int]], rest: int, places: tuple[int, int, int]) -> None:
    """Code a magnitude minus one: how many bits it has, with one decision each, then the bits below the first."""
    first, second, further = places
    coder.put(contexts[first], int(rest > 0))
    if not rest:
        return
    place, bits = second, rest.bit_length()
    for step in range(1, bits + 1):
        coder.put(contexts[place], int(step < bits))
        if step < bits:
            place = further + step - 1
    for shift in range(bits - 2, -1, -1):
        coder.put(contexts[place + 14], rest >> shift & 1)
