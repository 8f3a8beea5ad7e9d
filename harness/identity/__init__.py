"""Id <-> content: every sample's numbers are computed from its id, so that what arrives can be compared with it.

The mark of a picture's id is also drawn and read here; :mod:`.marks` explains how.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .marks import MarkReading, draw_mark, read_mark

__all__ = ["WIDTH", "MarkReading", "draw_mark", "intact", "read_mark", "rows"]

WIDTH = 8
"""Length of a sample's ``x``."""

_TOLERANCE = 1e-3  # wide enough for half precision, and the chance that two rows agree within it is below 1e-20


def rows(ids: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The ``x`` of each sample: ids of shape (n,) give float32 of shape (n, 8) with values in -0.5…0.5.

    splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) of ``8 * id + column``, its
    upper 24 bits: exact in float32, the same on every platform.
    """
    base = np.asarray(ids, dtype=np.int64).astype(np.uint64).reshape(-1, 1) * np.uint64(WIDTH)
    with np.errstate(over="ignore"):
        z: Any = (base + np.arange(1, WIDTH + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    content: npt.NDArray[np.float32] = ((z >> np.uint64(40)).astype(np.float64) / 2**24 - 0.5).astype(np.float32)
    return content


def intact(ids: npt.ArrayLike, x: Any) -> npt.NDArray[np.bool_]:
    """For each row of ``x`` (n, 8), whether it equals what was written for its id; NaN is never equal."""
    found = np.asarray(x, dtype=np.float64)
    wanted = rows(ids)
    if found.shape != wanted.shape:
        return np.zeros(len(wanted), dtype=np.bool_)
    result: npt.NDArray[np.bool_] = np.all(np.abs(found - wanted) <= _TOLERANCE, axis=1)
    return result
