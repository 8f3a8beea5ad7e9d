"""The id mark of a picture: drawn into its pixels, read back from whatever a pipeline made of them.

The mark lies on a grid of 32 × 32 cells over the whole picture, so it scales with it. It is a strip of 24 × 4 cells
near the top and another near the bottom, both between 1/8 and 7/8 of the width, out of reach of a crop of a tenth of
the picture at every side. A strip holds 48 bits, each as a light cell above a dark one or the reverse, so that no
threshold is needed: normalising, grey and brightness change nothing, and flat grey reads as nothing. The bits are a
scrambled id (24) and its checksum (24), masked differently in each strip. A row of alternating cells in the last corner
that a decoder reaches (bottom right) tells of a lost last percent.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import HarnessError

GRID = 32
"""Cells across and down; at 64 × 64 pixels a cell is 2 pixels wide, the least that survives any phase of resampling."""
COLUMNS = 24
FIRST_COLUMN = 4
STRIP_ROWS = 4
STRIPS = (4, 24)
"""First cell row of the top and of the bottom strip."""
TAIL_ROW, TAIL_FIRST = 31, 24
MAX_ID = (1 << 24) - 1
SMALLEST = 64
"""Pixels that a picture must have each way to carry a mark."""

DARK, LIGHT = 32, 224
"""Levels of 255; away from the ends, so that ringing is not clipped."""
_SCRAMBLE = 0x9E3779 | 1  # odd, so that multiplying permutes the 24-bit numbers: neighbouring ids differ in many cells
_UNSCRAMBLE = pow(_SCRAMBLE, -1, 1 << 24)
_ALL = (1 << 24) - 1
_MASKS = (0x5A3C96, 0xC3695F)  # one a strip; they also keep mirrored and inverted readings from being valid
_WORK = 128  # pixels each way at which a picture is read: four a cell
_SHOWS = 0.25  # of the whole span: marks had at least 0.34 in 1500 trials of crop, JPEG and resizing, noise at most 0.21
_CLEAR = 0.1  # of the mean contrast: low, because the checksum decides; what is flat has none
_POWERS = 1 << np.arange(COLUMNS - 1, -1, -1, dtype=np.int64)

Floats = npt.NDArray[np.float32]


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


def _crc24(word: int) -> int:
    crc = 0xB704CE
    for shift in (16, 8, 0):
        crc = ((crc << 8) & _ALL) ^ _CRC_TABLE[(crc >> 16) ^ (word >> shift & 0xFF)]
    return crc


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)  # the CRC-24 of RFC 4880
        table.append(crc & _ALL)
    return table


_CRC_TABLE = _crc_table()


def mark_words(sample: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two 24-bit words of the top and of the bottom strip; a set bit is a light cell above a dark one.

    Raises:
        HarnessError: the id does not fit into 24 bits.
    """
    if not 0 <= sample <= MAX_ID:
        raise HarnessError(f"a picture's mark holds ids from 0 to {MAX_ID}, not {sample}")
    word = (sample * _SCRAMBLE) & _ALL
    check = _crc24(word)
    return (word ^ _MASKS[0], check ^ _MASKS[0]), (word ^ _MASKS[1], check ^ _MASKS[1])


def _unword(first: int, second: int, strip: int) -> int | None:
    word = first ^ _MASKS[strip]
    return (word * _UNSCRAMBLE) & _ALL if _crc24(word) == second ^ _MASKS[strip] else None


def edges(pixels: int) -> npt.NDArray[np.intp]:
    """The 33 pixel positions between which the cells of an axis of that many pixels lie."""
    return (np.arange(GRID + 1) * pixels + GRID // 2) // GRID


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
        raise HarnessError(f"a picture of {width} × {height} is too small for a mark; it takes {SMALLEST} × {SMALLEST}")
    scale = 257 if pixels.dtype == np.uint16 else 1
    colours = pixels[..., :3] if pixels.ndim == 3 else pixels
    ys, xs = edges(height), edges(width)
    across = np.diff(xs)
    for first_row, words in zip(STRIPS, mark_words(sample)):
        # Two quiet cells on both sides: the reader finds the strip's ends by them.
        cells = np.full((STRIP_ROWS, COLUMNS + 4), LIGHT * scale, pixels.dtype)
        for pair, word in enumerate(words):
            bits = (word & _POWERS) != 0
            cells[2 * pair, 2:-2][~bits] = DARK * scale
            cells[2 * pair + 1, 2:-2][bits] = DARK * scale
        lines = cells.repeat(across[FIRST_COLUMN - 2 : FIRST_COLUMN + COLUMNS + 2], axis=1)
        for row in range(STRIP_ROWS):
            area = colours[ys[first_row + row] : ys[first_row + row + 1], xs[FIRST_COLUMN - 2] : xs[FIRST_COLUMN + COLUMNS + 2]]
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
        picture: a PIL picture, or an array or tensor ``(height, width)``, ``(height, width, channels)`` or
            ``(channels, height, width)`` with 1-4 channels; integers or floats, normalised or not, in any of the eight
            EXIF orientations, cropped by at most a tenth at each side. A picture without a mark reads as nothing.

    Raises:
        Whatever a lazily opened PIL picture raises when it is decoded.
    """
    grey = _grey(picture)
    if grey is None or min(grey.shape) < SMALLEST * 0.7:  # a crop of 64 pixels may have 52; below that cells blur
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
    # A small crop may have moved one strip out of reach, so half a reading is not taken as the last word.
    return best if best.top is not None and best.bottom is not None else _search(grey, span, best)


def _grey(picture: Any) -> Floats | None:
    """At most 128 × 128 floats, light is large; None: nothing that a mark could stand in."""
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
        # The mark is grey, so the channels agree there; alpha (or the black of CMYK) would only dilute it.
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
    size = (min(picture.width, _WORK), min(picture.height, _WORK))
    if picture.size != size:
        picture = picture.resize(size, 0)  # nearest: cells are flat, and it costs least
    if picture.mode not in ("1", "L", "F") and not picture.mode.startswith("I"):
        picture = picture.convert("L")
    return np.asarray(picture).astype(np.float32)


def _thinned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    for axis in (0, 1):
        pixels = array.shape[axis]
        if pixels % _WORK == 0:  # every so manieth, as a view: usual sizes cost nothing
            step = pixels // _WORK
            array = array[step // 2 :: step] if axis == 0 else array[:, step // 2 :: step]
        elif pixels > _WORK:
            array = array.take(_thin(pixels), axis)
    return array


@functools.lru_cache(64)
def _thin(pixels: int) -> npt.NDArray[np.intp]:
    places: npt.NDArray[np.intp] = ((np.arange(_WORK) + 0.5) * (pixels / _WORK)).astype(np.intp)
    return places


def _samples(first: int, cells: int) -> npt.NDArray[np.float64]:
    """Where the cells are sampled, as shares of the axis: two samples a cell, 0.22 cells from its middle."""
    return (((first + 0.5 + np.arange(cells))[:, None] + [-0.22, 0.22]) / GRID).ravel()


_STRIP_ROWS = np.concatenate([_samples(strip, STRIP_ROWS) for strip in STRIPS])
_STRIP_COLUMNS = _samples(FIRST_COLUMN, COLUMNS)
_TAIL_ROWS = _samples(TAIL_ROW, 1)
_TAIL_COLUMNS = _samples(TAIL_FIRST, GRID - TAIL_FIRST)

Crop = tuple[float, float, float, float]
"""Left, right, top, bottom: the shares of the uncropped picture that are gone."""
UNCROPPED = (0.0, 0.0, 0.0, 0.0)


def _at(samples: npt.NDArray[np.float64], crops: npt.NDArray[np.float64], pixels: int) -> npt.NDArray[np.intp]:
    """``(n, samples)`` pixels at which the samples lie under each of ``crops`` ``(n, 2)``."""
    at = (samples - crops[:, :1]) * (pixels / (1 - crops.sum(axis=1, keepdims=True)))
    places: npt.NDArray[np.intp] = np.clip(at, 0, pixels - 1).astype(np.intp)
    return places


@functools.lru_cache(16)
def _uncropped(pixels: int, rows: bool) -> npt.NDArray[np.intp]:
    places: npt.NDArray[np.intp] = _at(_STRIP_ROWS if rows else _STRIP_COLUMNS, np.zeros((1, 2)), pixels)[0]
    return places


def _decode(grey: Floats, crop: Crop, span: float) -> MarkReading | None:
    """Read both strips of a picture whose rows run along them, under the crop (left, right, top, bottom)."""
    left, right, top, bottom = crop
    height, width = grey.shape
    if crop is UNCROPPED:
        rows, columns = _uncropped(height, True), _uncropped(width, False)
    else:
        rows = _at(_STRIP_ROWS, np.array([[top, bottom]]), height)[0]
        columns = _at(_STRIP_COLUMNS, np.array([[left, right]]), width)[0]
    cells = grey[rows[:, None], columns].reshape(8, 2, COLUMNS, 2).sum(axis=(1, 3)) / 4
    contrast = cells[0::2] - cells[1::2]  # (top first, top second, bottom first, bottom second) × columns
    strength = np.abs(contrast).reshape(2, -1)
    mean = strength.mean(axis=1)
    # Every one of a strip's 48 pairs must stand out, by a like amount: pictures do not do that by chance.
    clear = (strength.min(axis=1) > _CLEAR * mean) & (mean > 0.2 * span)
    if not clear.any():
        return None
    bits = contrast > 0
    forward = [int(word) for word in bits @ _POWERS]
    backward = [int(word) for word in bits @ _POWERS[::-1]]
    for mirrored, words in ((False, forward), (True, backward)):
        for turned in (False, True):
            if turned:  # upside down: the last pair comes first, and light above dark is dark above light
                words = [word ^ _ALL for word in words[::-1]]
            for inverted in (False, True):
                read = [word ^ _ALL for word in words] if inverted else words
                visible = clear[::-1] if turned else clear
                found = [_unword(read[2 * s], read[2 * s + 1], s) if visible[s] else None for s in (0, 1)]
                if found[0] is None and found[1] is None:
                    continue
                agreed = found[0] == found[1]
                whole = agreed and _tail(grey, crop, mirrored, turned, -1.0 if inverted else 1.0, float(mean.min()))
                either = found[0] if found[0] is not None else found[1]
                known = None in found or agreed
                return MarkReading(either if known else None, whole, found[0], found[1])
    return None


def _tail(
    grey: Floats, crop: Crop, mirrored: bool, turned: bool, sign: float, contrast: float
) -> bool:
    """Whether the last corner is as drawn, or out of view."""
    if mirrored or turned:
        left, right, top, bottom = crop
        grey = grey[:: -1 if turned else 1, :: -1 if mirrored else 1]
        crop = (right, left, bottom, top) if mirrored and turned else (right, left, top, bottom) if mirrored else (left, right, bottom, top)
    if _tail_strength(grey, crop) * sign > 0.5 * contrast:
        return True
    # Lost, or moved a little by a small crop. Only when no crop explains it is content missing.
    grey = _stretched(grey)
    *_, exact, _, _ = _refined(grey, np.array(crop[:2]), np.array(crop[2:]))
    if exact[1] > 0.5 / GRID or exact[3] > 0.5 / GRID:
        return True
    return _tail_strength(grey, exact) * sign > 0.5 * contrast


def _tail_strength(grey: Floats, crop: Crop) -> float:
    left, right, top, bottom = crop
    height, width = grey.shape
    rows = _at(_TAIL_ROWS, np.array([[top, bottom]]), height)[0]
    columns = _at(_TAIL_COLUMNS, np.array([[left, right]]), width)[0]
    cells = grey[rows[:, None], columns].mean(axis=0).reshape(-1, 2).mean(axis=1)
    # The weakest neighbourhood counts: a corner of which a part is lost is lost.
    return float((cells[1::2] - cells[0::2]).min())


# --- finding a mark that a crop has moved ----------------------------------------------------------------------------


def _pairs(step: float, reach: int, first: float = 0.0) -> npt.NDArray[np.float64]:
    """``(n, 2)``: every pair of crops before and after, ``first`` … in ``reach`` steps each."""
    steps = first + step * np.arange(reach)
    return np.stack([grid.ravel() for grid in np.meshgrid(steps, steps, indexing="ij")], axis=1)


_COARSE = _pairs(0.01, 11)
_FINE = _pairs(0.0025, 5, -0.005)
_BOUNDARIES = np.array([strip + pair for strip in STRIPS for pair in (1, 3)])


def _search(grey: Floats, span: float, best: MarkReading) -> MarkReading:
    """The fullest reading under any of the likeliest crops of either axis, if it is fuller than ``best``."""
    grey = _stretched(grey)
    sides = [(axes, *_downward(axes)) for axes in (grey, grey.T)]
    for axes, shows, likely in sorted(sides, key=lambda side: -side[1]):
        if shows < _SHOWS * span:
            break
        for crop in _crops(axes, likely):
            reading = _decode(axes, crop, span)
            if reading is not None and reading.whole:
                return reading
            if reading is not None and (best is NOTHING or None in (best.top, best.bottom)):
                best = reading
        if best is not NOTHING:
            break
    return best


def _stretched(grey: Floats) -> Floats:
    """At least 128 pixels each way, by linear interpolation, so that crops of parts of a pixel can be tried."""
    for axis in (0, 1):
        pixels = grey.shape[axis]
        if pixels < _WORK:
            at = np.clip((np.arange(_WORK) + 0.5) * (pixels / _WORK) - 0.5, 0, pixels - 1)
            low = np.minimum(at.astype(np.intp), pixels - 2)
            share = (at - low).astype(np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
            grey = grey.take(low, axis) * (1 - share) + grey.take(low + 1, axis) * share
    return grey


def _downward(grey: Floats) -> tuple[float, npt.NDArray[np.float64]]:
    """How strongly a mark shows whose rows lie across, and the three likeliest crops (top, bottom), best first."""
    height, width = grey.shape
    half = max(1, round(0.55 * height / GRID))
    inner = grey[:, width // 4 : width - width // 4]
    change = np.abs(inner[: -2 * half] - inner[2 * half :])
    # Between the rows of a pair every column changes; in a picture some columns do not. So a low quantile tells.
    weakest = np.partition(change, change.shape[1] // 5, axis=1)[:, change.shape[1] // 5]
    at = (_BOUNDARIES / GRID - _COARSE[:, :1]) / (1 - _COARSE.sum(axis=1, keepdims=True)) * height
    found = weakest[np.clip(np.round(at).astype(np.intp) - half, 0, len(weakest) - 1)]
    score = found.sum(axis=1)
    order = np.argsort(-score)[:3]
    return float(found[order[0]].reshape(2, 2).mean(axis=1).max()), _COARSE[order]


def _crops(grey: Floats, likely: npt.NDArray[np.float64]) -> Iterator[Crop]:
    """Crops (left, right, top, bottom) that fit well, from the first guess to the closest."""
    height, width = grey.shape
    for down in likely:
        lines = grey[_at(_STRIP_ROWS, down[None], height)[0]].reshape(8, 2, width).sum(axis=1)
        contrast = (lines[0::2] - lines[1::2])[:, _at(_STRIP_COLUMNS, _COARSE, width)]
        score = _agreement(contrast.reshape(4, -1, COLUMNS, 2)).sum(axis=(0, 2))
        for _ in range(2):
            across = _COARSE[score.argmax()]
            yield from _refined(grey, across, down)
            # The next guess is one of another scale: the crops tried here took another share in all.
            score[np.abs(_COARSE.sum(axis=1) - across.sum()) < 0.025] = 0


def _refined(grey: Floats, across: npt.NDArray[np.float64], down: npt.NDArray[np.float64]) -> Iterator[Crop]:
    yield (*across.tolist(), *down.tolist())
    for _ in range(2):
        finer = np.clip(down + _FINE, 0, None)
        down = finer[_fit(grey, across[None], finer).argmax()]
        finer = np.clip(across + _FINE, 0, None)
        across = finer[_fit(grey, finer, down[None]).argmax()]
        # Cells fit as well a whole cell further on, all but one of them.
        for shift in (0, 1 / GRID, -1 / GRID):
            yield (*(across + (shift, -shift)).tolist(), *down.tolist())


def _agreement(ends: Floats) -> Floats:
    """Low where the two samples of a cell (last axis) differ in sign: there one of them shows a neighbour."""
    product: Floats = ends[..., 0] * ends[..., 1]
    return product.clip(max=np.abs(product).mean())


def _fit(grey: Floats, across: npt.NDArray[np.float64], down: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """How well the cells stand out under each crop; one of ``across`` ``(n, 2)`` and ``down`` ``(n, 2)`` may have one row."""
    height, width = grey.shape
    rows = _at(_STRIP_ROWS, down, height)[:, :, None]
    columns = _at(_STRIP_COLUMNS, across, width)[:, None, :]
    cells = grey[rows, columns].reshape(-1, 4, 2, 2, 2 * COLUMNS)  # n × pairs × upper and lower × two samples each way
    contrast = cells[:, :, 0] - cells[:, :, 1, ::-1]
    sideways: Floats = _agreement(contrast.reshape(-1, 4, 2, COLUMNS, 2)).sum(axis=(1, 2, 3))
    sideways += _agreement(contrast.transpose(0, 1, 3, 2)).sum(axis=(1, 2))
    return sideways
