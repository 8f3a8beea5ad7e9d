"""The id mark of a picture: drawn into its pixels, and read back after a pipeline has changed them."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import HarnessError
from .mark_code import (
    ALL,
    COLUMNS,
    DARK,
    FIRST_COLUMN,
    GRID,
    LIGHT,
    MAX_ID,
    POWERS,
    SMALLEST,
    STRIP_ROWS,
    STRIPS,
    TAIL_FIRST,
    TAIL_ROW,
    edges,
    mark_words,
    unword,
)
from .mark_finder import (
    COLUMNS_AT,
    ROWS_AT,
    TAIL_COLUMNS_AT,
    TAIL_ROWS_AT,
    UNCROPPED,
    WORK,
    Crop,
    Floats,
    crops,
    downward,
    pixels_at,
    refined,
    stretched,
)

__all__ = ["MAX_ID", "SMALLEST", "MarkReading", "draw_mark", "read_mark"]

_SHOWS = (
    0.25  # of the whole span: marks had at least 0.34 in 1500 trials of crop, JPEG and resizing, noise at most 0.21
)
_CLEAR = 0.1  # share of the mean contrast: low, because the checksum decides; flat pictures have none


@dataclass(frozen=True)
class MarkReading:
    """What a picture says about which sample it is."""

    id: int | None
    """The sample's id; None: no mark, or the two strips name different samples."""
    whole: bool
    """Top, bottom and (where it is in view) the last corner were all read, and agree."""
    top: int | None = None
    bottom: int | None = None


NOTHING = MarkReading(None, False)


def draw_mark(pixels: npt.NDArray[Any], sample: int) -> None:
    """Draw the mark of ``sample`` into ``pixels``, in place.

    Args:
        pixels: ``(height, width)`` grey, or ``(height, width, 3 | 4)`` RGB or RGBA; uint8 or uint16; at least 64 × 64.
        sample: 0 … 16,777,215.

    Raises:
        HarnessError: the picture is too small, or the id too large.
    """
    height, width = pixels.shape[:2]
    if min(height, width) < SMALLEST:
        raise HarnessError(f"a picture of {width} × {height} is too small for a mark, which needs {SMALLEST} × {SMALLEST}")
    scale = 257 if pixels.dtype == np.uint16 else 1
    colours = pixels[..., :3] if pixels.ndim == 3 else pixels
    ys, xs = edges(height), edges(width)
    across = np.diff(xs)
    for first_row, words in zip(STRIPS, mark_words(sample)):
        # Two quiet cells on both sides: the reader uses them to find the ends of the strip.
        cells = np.full((STRIP_ROWS, COLUMNS + 4), LIGHT * scale, pixels.dtype)
        for pair, word in enumerate(words):
            bits = (word & POWERS) != 0
            cells[2 * pair, 2:-2][~bits] = DARK * scale
            cells[2 * pair + 1, 2:-2][bits] = DARK * scale
        lines = cells.repeat(across[FIRST_COLUMN - 2 : FIRST_COLUMN + COLUMNS + 2], axis=1)
        for row in range(STRIP_ROWS):
            area = colours[
                ys[first_row + row] : ys[first_row + row + 1], xs[FIRST_COLUMN - 2] : xs[FIRST_COLUMN + COLUMNS + 2]
            ]
            area[...] = lines[row, :, None] if pixels.ndim == 3 else lines[row]
    tail = np.array([DARK, LIGHT] * ((GRID - TAIL_FIRST) // 2), pixels.dtype) * pixels.dtype.type(scale)
    line = tail.repeat(across[TAIL_FIRST:])
    colours[ys[TAIL_ROW] :, xs[TAIL_FIRST] :] = line[:, None] if pixels.ndim == 3 else line
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        pixels[..., 3] = 255 * scale


# --- reading -----------------------------------------------------------------------------------------------------------


def read_mark(picture: Any) -> MarkReading:
    """Read the id mark of one picture.

    Args:
        picture: a PIL picture, or an array or tensor ``(height, width)``, ``(height, width, channels)`` or ``(channels,
            height, width)`` with 1-4 channels; integers or floats, normalised or not, in any of the eight EXIF
            orientations, cropped by at most a tenth at each side. A picture without a mark gives an empty reading.

    Raises:
        Exception: anything that a lazily opened PIL picture raises when it is decoded.
    """
    grey = grey_of(picture)
    if grey is None or min(grey.shape) < SMALLEST * 0.7:  # a crop of a 64-pixel picture may have 52; below that, cells blur
        return NOTHING
    span = float(grey.max() - grey.min())
    if not span > 0:  # flat, or not a number
        return NOTHING
    best = NOTHING
    for axes in (grey, grey.T):
        reading = _decode(axes, UNCROPPED, span)
        if reading is not None:
            best = reading
            break
    # A small crop may have moved one strip, so the search continues after half a reading.
    return best if best.top is not None and best.bottom is not None else _search(grey, span, best)


def grey_of(picture: Any) -> Floats | None:
    """At most 128 × 128 floats, where large is light; None: there is no room for a mark."""
    if hasattr(picture, "getbands"):
        return _grey_of_pil(picture)
    if hasattr(picture, "detach"):
        picture = picture.detach().float().cpu().numpy()
    array = np.asarray(picture)
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3:
        if array.shape[2] > 4 and array.shape[0] <= 4:
            array = array.transpose(1, 2, 0)
        if array.shape[2] > 4:
            return None
        array = _thinned(array)
        # The mark is grey, so its channels agree; alpha (or the black of CMYK) would only weaken it.
        channels: Floats = array[..., 0].astype(np.float32)
        for channel in range(1, min(3, array.shape[2])):
            channels += array[..., channel]
        return channels
    if array.ndim != 2 or array.dtype.kind not in "uifb":
        return None
    return _thinned(array).astype(np.float32)


def _grey_of_pil(picture: Any) -> Floats:
    picture.load()
    if picture.mode in ("P", "PA"):
        picture = picture.convert("RGB")
    size = (min(picture.width, WORK), min(picture.height, WORK))
    if picture.size != size:
        picture = picture.resize(size, 0)  # nearest: cells are flat, and it is the fastest
    if picture.mode not in ("1", "L", "F") and not picture.mode.startswith("I"):
        picture = picture.convert("L")
    return np.asarray(picture).astype(np.float32)


def _thinned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    for axis in (0, 1):
        pixels = array.shape[axis]
        if pixels % WORK == 0:  # every n-th pixel, as a view: usual sizes cost nothing
            step = pixels // WORK
            array = array[step // 2 :: step] if axis == 0 else array[:, step // 2 :: step]
        elif pixels > WORK:
            array = array.take(_thin(pixels), axis)
    return array


@functools.lru_cache(64)
def _thin(pixels: int) -> npt.NDArray[np.intp]:
    places: npt.NDArray[np.intp] = ((np.arange(WORK) + 0.5) * (pixels / WORK)).astype(np.intp)
    return places


@functools.lru_cache(16)
def _uncropped(pixels: int, rows: bool) -> npt.NDArray[np.intp]:
    places: npt.NDArray[np.intp] = pixels_at(ROWS_AT if rows else COLUMNS_AT, np.zeros((1, 2)), pixels)[0]
    return places


def _decode(grey: Floats, crop: Crop, span: float) -> MarkReading | None:
    """Read both strips of a picture with horizontal rows, under the crop (left, right, top, bottom)."""
    left, right, top, bottom = crop
    height, width = grey.shape
    if crop is UNCROPPED:
        rows, columns = _uncropped(height, True), _uncropped(width, False)
    else:
        rows = pixels_at(ROWS_AT, np.array([[top, bottom]]), height)[0]
        columns = pixels_at(COLUMNS_AT, np.array([[left, right]]), width)[0]
    cells = grey[rows[:, None], columns].reshape(8, 2, COLUMNS, 2).sum(axis=(1, 3)) / 4
    contrast = cells[0::2] - cells[1::2]  # (top first, top second, bottom first, bottom second) × columns
    strength = np.abs(contrast).reshape(2, -1)
    mean = strength.mean(axis=1)
    # Each of a strip's 48 pairs must have a clear and similar contrast: pictures do not have that by chance.
    clear = (strength.min(axis=1) > _CLEAR * mean) & (mean > 0.2 * span)
    if not clear.any():
        return None
    bits = contrast > 0
    forward = [int(word) for word in bits @ POWERS]
    backward = [int(word) for word in bits @ POWERS[::-1]]
    for mirrored, turned, inverted in itertools.product((False, True), repeat=3):
        words = backward if mirrored else forward
        if turned:  # upside down: the last pair comes first, and light above dark is dark above light
            words = words[::-1]
        if turned != inverted:
            words = [word ^ ALL for word in words]
        visible = clear[::-1] if turned else clear
        found = [unword(words[2 * s], words[2 * s + 1], s) if visible[s] else None for s in (0, 1)]
        if found[0] is None and found[1] is None:
            continue
        agreed = found[0] == found[1]
        sides = _Sides(mirrored, turned, -1.0 if inverted else 1.0)
        whole = agreed and _tail(grey, crop, sides, float(mean.min()))
        either = found[0] if found[0] is not None else found[1]
        return MarkReading(either if agreed or None in found else None, whole, found[0], found[1])
    return None


class _Sides(NamedTuple):
    """The orientation of a picture: left and right exchanged, upside down; -1 for a negative."""

    mirrored: bool
    turned: bool
    sign: float


def _tail(grey: Floats, crop: Crop, sides: _Sides, contrast: float) -> bool:
    """Whether the last corner is as drawn, or outside the crop."""
    left, right, top, bottom = crop
    if sides.mirrored:
        grey, left, right = grey[:, ::-1], right, left
    if sides.turned:
        grey, top, bottom = grey[::-1], bottom, top
    crop = (left, right, top, bottom)
    if _tail_strength(grey, crop) * sides.sign > 0.5 * contrast:
        return True
    # Lost, or moved a little by a small crop. Content is missing only if no crop explains it.
    grey = stretched(grey)
    *_, exact, _, _ = refined(grey, np.array(crop[:2]), np.array(crop[2:]))
    if exact[1] > 0.5 / GRID or exact[3] > 0.5 / GRID:
        return True
    return _tail_strength(grey, exact) * sides.sign > 0.5 * contrast


def _tail_strength(grey: Floats, crop: Crop) -> float:
    left, right, top, bottom = crop
    height, width = grey.shape
    rows = pixels_at(TAIL_ROWS_AT, np.array([[top, bottom]]), height)[0]
    columns = pixels_at(TAIL_COLUMNS_AT, np.array([[left, right]]), width)[0]
    cells = grey[rows[:, None], columns].mean(axis=0).reshape(-1, 2).mean(axis=1)
    # The weakest neighbourhood counts: if a part of a corner is lost, the corner is lost.
    return float((cells[1::2] - cells[0::2]).min())


def _search(grey: Floats, span: float, best: MarkReading) -> MarkReading:
    """The most complete reading under any of the likeliest crops of either axis, if it is more complete than ``best``."""
    grey = stretched(grey)
    sides = [(axes, *downward(axes)) for axes in (grey, grey.T)]
    for axes, shows, likely in sorted(sides, key=lambda side: -side[1]):
        if shows < _SHOWS * span:
            break
        for crop in crops(axes, likely):
            reading = _decode(axes, crop, span)
            if reading is not None and reading.whole:
                return reading
            if reading is not None and (best is NOTHING or None in (best.top, best.bottom)):
                best = reading
        if best is not NOTHING:
            break
    return best
