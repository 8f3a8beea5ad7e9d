"""The pictures of a failing trial: for each sample of a failure, what was stored and what arrived.

They are in the trial's folder, as ``pictures/<sample>-stored.png`` and ``pictures/<sample>-arrived.png``. What arrived
wrong is written while the trial runs (:class:`Album`); what was stored is added after the trial has failed
(:func:`add_stored`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..corpus.manifest import read_samples
from ..errors import UserError
from . import endings
from .spec import TrialSpec
from .stored_pictures import StoredPictures, decoded

if TYPE_CHECKING:
    from PIL import Image

FOLDER = "pictures"
STORED, ARRIVED = "stored", "arrived"
_NAME = re.compile(rf"(-1|[0-9]+)-({STORED}|{ARRIVED})\.png")
_MOST = 8
"""Samples of one trial: more pictures of the same failure show nothing new."""
_LONGEST_SIDE = 512  # maximum size in pixels of a stored picture


@dataclass(frozen=True)
class Snapshot:
    """One sample of a failing trial: what was stored and what arrived, as PNG files."""

    sample: int
    """The sample's id; -1: a picture that arrived without a readable id."""
    file: str
    """The stored file (or shard), relative to the corpus; empty if it is not known."""
    stored: Path | None
    """None: nothing of the stored file can be decoded, or the sample is not known."""
    arrived: Path | None
    """None: no picture of the sample arrived."""


def snapshots(folder: Path) -> list[Snapshot]:
    """The pictures in the folder of a trial, in order of the samples; empty if there are none.

    A folder that was cut short, or contains no trial, gives what is readable and raises nothing.
    """
    found: dict[int, dict[str, Path]] = {}
    try:
        paths = sorted((folder / FOLDER).iterdir())
    except OSError:
        return []
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match and path.is_file():
            found.setdefault(int(match[1]), {})[match[2]] = path
    if not found:
        return []
    try:
        stored = TrialSpec.read(folder / endings.TRIAL).stored
    except UserError:
        stored = None
    return [
        Snapshot(sample, stored.path_of(sample) if stored else "", found[sample].get(STORED), found[sample].get(ARRIVED))
        for sample in sorted(found)
    ]


class Album:
    """Writes what arrived wrong into a trial's folder: the first picture of each sample, of a few samples.

    A picture that cannot be written is left out: the record of the trial does not depend on it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._seen: set[int] = set()

    def add(self, sample: int, picture: Any) -> None:
        """Keep one picture: of PIL, an array, or the bytes of a file; -1 for a sample that is not known."""
        if sample in self._seen or len(self._seen) >= _MOST:
            return
        self._seen.add(sample)
        _write(self._folder, sample, ARRIVED, picture)


def add_stored(folder: Path, root: str, blamed: Sequence[int]) -> None:
    """Add what was stored to the folder of a failing trial, and remove what arrived of samples in no failure.

    Args:
        root: the corpus.
        blamed: the samples; those with a picture that arrived come first, and a few of the others follow.
    """
    arrived = [found.sample for found in snapshots(folder) if found.arrived is not None]
    for sample in arrived:
        if sample not in blamed and sample != -1:
            (folder / FOLDER / _name(sample, ARRIVED)).unlink(missing_ok=True)
    chosen = sorted(dict.fromkeys(blamed), key=lambda sample: sample not in arrived)[:_MOST]
    try:
        stored = StoredPictures(root, list(read_samples(root)))
    except UserError:  # the corpus no longer exists
        return
    for sample in chosen:
        data = stored.data(sample)
        if data is not None:
            _write(folder / FOLDER, sample, STORED, data)


def _name(sample: int, what: str) -> str:
    return f"{sample}-{what}.png"


def _write(folder: Path, sample: int, what: str, picture: Any) -> None:
    with contextlib.suppress(Exception):  # any error of a decoder or an encoder, or a full disk
        image = _image(picture)
        if image is None:
            return
        folder.mkdir(exist_ok=True)
        partial = folder / f"{sample}-{what}.partial"
        image.save(partial, "PNG")
        partial.rename(folder / _name(sample, what))  # a trial that is killed leaves no incomplete picture


def _image(picture: Any) -> Image.Image | None:
    """A picture of any form as RGB of a moderate size."""
    from PIL import Image

    if isinstance(picture, (bytes, bytearray)):
        picture = decoded(bytes(picture), lenient=True)
        if picture is None:
            return None
    if hasattr(picture, "getbands"):
        image = picture
        if image.mode.startswith("I") or image.mode == "F":
            image = Image.fromarray(_levels(np.asarray(image)))
        image = image.convert("RGB")
    else:
        if hasattr(picture, "detach"):
            picture = picture.detach().float().cpu().numpy() if picture.is_floating_point() else picture.detach().cpu().numpy()
        pixels = np.asarray(picture)
        if pixels.ndim == 3 and pixels.shape[2] > 4:
            pixels = pixels.transpose(1, 2, 0)
        levels = _levels(pixels)
        if levels.ndim == 3:
            levels = levels[..., :3] if levels.shape[2] >= 3 else levels[..., 0]
        image = Image.fromarray(np.ascontiguousarray(levels)).convert("RGB")
    image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    kept: Image.Image = image
    return kept


def _levels(pixels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Numbers of any scale as levels of 0…255: normalised pictures are stretched between their extremes."""
    if pixels.dtype == np.uint8:
        return pixels
    found = np.nan_to_num(pixels.astype(np.float64))
    low, high = float(found.min(initial=0.0)), float(found.max(initial=0.0))
    if pixels.dtype.kind in "iu":
        scale = 1.0 if high <= 255 else 1 / 257
    elif low >= 0 and high <= 1:
        scale = 255.0
    else:
        scale = 1.0 if low >= 0 and high <= 255 else 255 / max(high - low, 1e-9)
    return np.clip((found - min(low, 0.0)) * scale, 0, 255).round().astype(np.uint8)
