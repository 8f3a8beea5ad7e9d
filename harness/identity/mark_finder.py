"""Finds an id mark that was moved by a crop: which shares of the picture were cut off at its sides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .mark_code import COLUMNS, FIRST_COLUMN, GRID, STRIP_ROWS, STRIPS, TAIL_FIRST, TAIL_ROW

Floats = npt.NDArray[np.float32]
WORK = 128
"""Pixels in each direction at which a picture is read: four for each cell."""


def samples(first: int, cells: int) -> npt.NDArray[np.float64]:
    """Where the cells are sampled, as shares of the axis: two samples in a cell, 0.22 cells from its centre."""
    return (((first + 0.5 + np.arange(cells))[:, None] + [-0.22, 0.22]) / GRID).ravel()


ROWS_AT = np.concatenate([samples(strip, STRIP_ROWS) for strip in STRIPS])
COLUMNS_AT = samples(FIRST_COLUMN, COLUMNS)
TAIL_ROWS_AT = samples(TAIL_ROW, 1)
TAIL_COLUMNS_AT = samples(TAIL_FIRST, GRID - TAIL_FIRST)

Crop = tuple[float, float, float, float]
"""Left, right, top, bottom: the shares of the uncropped picture that were cut off."""
UNCROPPED = (0.0, 0.0, 0.0, 0.0)


def pixels_at(places: npt.NDArray[np.float64], crops: npt.NDArray[np.float64], pixels: int) -> npt.NDArray[np.intp]:
    """``(n, places)`` pixels at which places (shares of an uncropped axis) are under each of ``crops`` ``(n, 2)``."""
    at = (places - crops[:, :1]) * (pixels / (1 - crops.sum(axis=1, keepdims=True)))
    found: npt.NDArray[np.intp] = np.clip(at, 0, pixels - 1).astype(np.intp)
    return found


def _pairs(step: float, reach: int, first: float = 0.0) -> npt.NDArray[np.float64]:
    """``(n, 2)``: every pair of crops before and after, ``reach`` steps from ``first`` each."""
    steps = first + step * np.arange(reach)
    return np.stack([grid.ravel() for grid in np.meshgrid(steps, steps, indexing="ij")], axis=1)


_COARSE = _pairs(0.01, 11)
_FINE = _pairs(0.0025, 5, -0.005)
_BOUNDARIES = np.array([strip + pair for strip in STRIPS for pair in (1, 3)])


def stretched(grey: Floats) -> Floats:
    """At least 128 pixels in each direction, by linear interpolation, so that crops by fractions of a pixel can be tried."""
    for axis in (0, 1):
        pixels = grey.shape[axis]
        if pixels < WORK:
            at = np.clip((np.arange(WORK) + 0.5) * (pixels / WORK) - 0.5, 0, pixels - 1)
            low = np.minimum(at.astype(np.intp), pixels - 2)
            share = (at - low).astype(np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
            grey = grey.take(low, axis) * (1 - share) + grey.take(low + 1, axis) * share
    return grey


def downward(grey: Floats) -> tuple[float, npt.NDArray[np.float64]]:
    """How strong the evidence is for a mark with horizontal rows, and the three likeliest crops (top, bottom), best first."""
    height, width = grey.shape
    half = max(1, round(0.55 * height / GRID))
    inner = grey[:, width // 4 : width - width // 4]
    change = np.abs(inner[: -2 * half] - inner[2 * half :])
    # Between the rows of a pair every column changes; in a picture some columns do not. So a low quantile decides.
    weakest = np.partition(change, change.shape[1] // 5, axis=1)[:, change.shape[1] // 5]
    at = (_BOUNDARIES / GRID - _COARSE[:, :1]) / (1 - _COARSE.sum(axis=1, keepdims=True)) * height
    found = weakest[np.clip(np.round(at).astype(np.intp) - half, 0, len(weakest) - 1)]
    score = found.sum(axis=1)
    order = np.argsort(-score)[:3]
    return float(found[order[0]].reshape(2, 2).mean(axis=1).max()), _COARSE[order]


def crops(grey: Floats, likely: npt.NDArray[np.float64]) -> Iterator[Crop]:
    """Crops (left, right, top, bottom) that fit well, from the first guess to the closest."""
    height, width = grey.shape
    for down in likely:
        lines = grey[pixels_at(ROWS_AT, down[None], height)[0]].reshape(8, 2, width).sum(axis=1)
        contrast = (lines[0::2] - lines[1::2])[:, pixels_at(COLUMNS_AT, _COARSE, width)]
        score = _agreement(contrast.reshape(4, -1, COLUMNS, 2)).sum(axis=(0, 2))
        for _ in range(2):
            across = _COARSE[score.argmax()]
            yield from refined(grey, across, down)
            # The next guess has another scale: the crops tried here removed another share in total.
            score[np.abs(_COARSE.sum(axis=1) - across.sum()) < 0.025] = 0


def refined(grey: Floats, across: npt.NDArray[np.float64], down: npt.NDArray[np.float64]) -> Iterator[Crop]:
    """Crops that fit better and better, from crops ``(2,)`` across and down that nearly fit; the last three are the best."""
    yield (*across.tolist(), *down.tolist())
    for _ in range(2):
        finer = np.clip(down + _FINE, 0, None)
        down = finer[_fit(grey, across[None], finer).argmax()]
        finer = np.clip(across + _FINE, 0, None)
        across = finer[_fit(grey, finer, down[None]).argmax()]
        # A shift by one whole cell fits as well, except for one cell.
        for shift in (0, 1 / GRID, -1 / GRID):
            yield (across[0] + shift, across[1] - shift, *down.tolist())


def _agreement(ends: Floats) -> Floats:
    """Low if the two samples of a cell (last axis) differ in sign: then one of them is in a neighbouring cell."""
    product: Floats = ends[..., 0] * ends[..., 1]
    return product.clip(max=np.abs(product).mean())


def _fit(grey: Floats, across: npt.NDArray[np.float64], down: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """How clearly the cells differ under each crop; one of ``across`` ``(n, 2)`` and ``down`` ``(n, 2)`` may have one row."""
    height, width = grey.shape
    rows = pixels_at(ROWS_AT, down, height)[:, :, None]
    columns = pixels_at(COLUMNS_AT, across, width)[:, None, :]
    cells = grey[rows, columns].reshape(-1, 4, 2, 2, 2 * COLUMNS)  # n × pairs × upper and lower × two samples each way
    contrast = cells[:, :, 0] - cells[:, :, 1, ::-1]
    sideways: Floats = _agreement(contrast.reshape(-1, 4, 2, COLUMNS, 2)).sum(axis=(1, 2, 3))
    sideways += _agreement(contrast.transpose(0, 1, 3, 2)).sum(axis=(1, 2))
    return sideways
