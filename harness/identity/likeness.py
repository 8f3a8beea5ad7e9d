"""Whether a picture was made from a known original, for pictures in which no id mark can be read.

A picture is like its original if it may be a crop of it, down to about a twelfth of its area. It may also be mirrored,
turned by quarters, negative, blurred, resized, and in any scale of numbers. Flat colour and noise are not like any
original.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .mark_finder import Floats
from .marks import grey_of

_SIDE = 32  # pixels each way at which pictures are compared: at this size the cells of a mark blur away
_SIZES = (1.0, 0.84, 0.7, 0.59, 0.5, 0.42, 0.35, 0.28)  # of a crop's sides
_MOST_UNEQUAL = 1.6  # the ratio of a crop's sides
_LEAST = 0.7
"""Measured at 64 pixels: 200 random crops of at least 8 % of the area had at least 0.82, also with changed colours;
rotations by up to 15 degrees had at least 0.69."""
_FLAT = 0.01
"""Deviation of the levels divided by the largest; below this the picture is one colour. Crops had at least 0.05."""
_NEARLY_FLAT = 0.1
"""The same limit for an original of one colour, after resizing and a little noise."""
_COARSE = 8  # pixels in each direction: at this size little noise is left
_NOISE, _MOST_NOISE = 7.2, 0.22
"""White noise keeps 5.3 / side of its deviation at 8 × 8; pictures and crops of them kept at least 0.23."""


def is_like(picture: Any, original: Any) -> bool:
    """Whether a picture may be made from an original.

    Both are PIL's, or arrays ``(H, W[, C])`` or ``(C, H, W)`` of any numbers.
    """
    grey, of = grey_of(picture), grey_of(original)
    if grey is None or of is None or not np.isfinite(grey).all():
        return False
    if _spread(of) < _FLAT:
        return _spread(grey) < _NEARLY_FLAT
    if _spread(grey) < _FLAT or _is_noise(grey):
        return False
    return any(found >= _LEAST for found in _likenesses(grey, of))


def is_flat(picture: Any) -> bool:
    """Whether a picture is of one colour."""
    grey = grey_of(picture)
    return grey is not None and bool(np.isfinite(grey).all()) and _spread(grey) < _FLAT


def _spread(grey: Floats) -> float:
    most = float(np.abs(grey).max(initial=0.0))
    return float(grey.std()) / most if most else 0.0


def _is_noise(grey: Floats) -> bool:
    left = float(_resized(grey, _COARSE, _COARSE).std()) / float(grey.std())
    return bool(left < min(_NOISE / min(grey.shape), _MOST_NOISE))


def _likenesses(grey: Floats, of: Floats) -> Iterator[float]:
    """For each size of crop and each orientation: the largest absolute correlation with any part of the original."""
    whole = _Whole(_resized(of, _SIDE, _SIDE))
    for high, wide in _shapes():
        for upright in (_resized(grey, high, wide), _resized(grey, wide, high).T):
            yield whole.best(np.stack([upright, upright[:, ::-1], upright[::-1], upright[::-1, ::-1]]))


@functools.cache
def _shapes() -> tuple[tuple[int, int], ...]:
    """Heights and widths in pixels of the crops that are tried, the largest first."""
    pairs = [pair for pair in itertools.product(_SIZES, _SIZES) if max(pair) / min(pair) <= _MOST_UNEQUAL]
    return tuple(sorted({(round(_SIDE * a), round(_SIDE * b)) for a, b in pairs}, key=lambda size: -size[0] * size[1]))


def _resized(grey: Floats, high: int, wide: int) -> Floats:
    return (_weights(grey.shape[0], high) @ grey @ _weights(grey.shape[1], wide).T).astype(np.float32, copy=False)


@functools.lru_cache(256)
def _weights(given: int, wanted: int) -> npt.NDArray[np.float32]:
    """``(wanted, given)``: each row is a triangle around a pixel's centre, as wide as a pixel of the coarser size."""
    scale = given / wanted
    middle = (np.arange(wanted) + 0.5) * scale - 0.5
    weights = np.clip(1 - np.abs(np.arange(given) - middle[:, None]) / max(1.0, scale), 0, None)
    found: npt.NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return found


class _Whole:
    """An original, prepared for the search for crops."""

    def __init__(self, grey: Floats) -> None:
        levels = _blurred((grey - grey.mean())[None])[0].astype(np.float64)
        self._floor = 0.05 * float(levels.std())
        self._transformed = np.fft.rfft2(levels, (2 * _SIDE, 2 * _SIDE))
        self._sums = [np.pad(part, ((1, 0), (1, 0))).cumsum(0).cumsum(1) for part in (levels, levels**2)]

    def best(self, crops: Floats) -> float:
        """The largest correlation of crops ``(n, h, w)`` with parts of the original."""
        high, wide = crops.shape[1:]
        crops = _blurred(crops)
        crops = crops - crops.mean(axis=(1, 2), keepdims=True)
        norm = float(np.sqrt((crops[0] ** 2).sum()))  # they are one crop in several orientations
        if norm < 1e-9:
            return 0.0
        size = (2 * _SIDE, 2 * _SIDE)
        product = np.fft.irfft2(self._transformed * np.conj(np.fft.rfft2(crops, size)), size)
        product = product[:, : _SIDE - high + 1, : _SIDE - wide + 1]
        total, squares = (
            sums[high:, wide:] - sums[:-high, wide:] - sums[high:, :-wide] + sums[:-high, :-wide] for sums in self._sums
        )
        spread = np.sqrt(np.clip(squares - total**2 / (high * wide), 1e-9, None))
        return float((np.abs(product) / (norm * np.maximum(spread, self._floor * np.sqrt(high * wide)))).max())


def _blurred(greys: Floats) -> Floats:
    """With half of each neighbour's level, so that a shift by one pixel still agrees."""
    for axis in (1, 2):
        padded = np.pad(greys, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
        before, after = padded.take(range(greys.shape[axis]), axis), padded.take(range(2, greys.shape[axis] + 2), axis)
        greys = ((greys + (before + after) / 2) / 2).astype(np.float32, copy=False)
    return greys
