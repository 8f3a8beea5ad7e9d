"""What picture decoders say about a file: the truth about a damaged picture is measured, never assumed."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .jpegparts import jpeg_is_complete, png_is_complete
from .oracles import WHOLE, lossy, raises

Decoded = npt.NDArray[Any]
Decoder = Callable[[bytes], Decoded]
"""Decodes the bytes of a file to ``(height, width[, channels])``; raises any error."""


def with_pillow(data: bytes) -> Decoded:
    """Pillow with its default settings: strict about truncation and about very large pictures."""
    from PIL import Image, ImageFile

    if ImageFile.LOAD_TRUNCATED_IMAGES:
        raise RuntimeError("Pillow is set to load truncated images, so it cannot judge them")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            return np.asarray(picture.convert("RGBA") if picture.mode in ("P", "PA") else picture)


def with_opencv(data: bytes) -> Decoded:
    """OpenCV's ``imdecode``. It returns None for what it cannot read; this function raises instead."""
    import cv2

    with _silenced():
        picture: Decoded | None = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if picture is None:
        raise ValueError("imdecode returned None")
    return picture


REFERENCES: Mapping[str, Decoder] = {"pillow": with_pillow, "opencv": with_opencv}
"""The decoders that judge, if they are installed."""
_MODULES = {"pillow": "PIL", "opencv": "cv2"}


@functools.cache
def installed_references() -> dict[str, Decoder]:
    """The reference decoders that can be imported here."""
    return {name: decode for name, decode in REFERENCES.items() if importlib.util.find_spec(_MODULES[name])}


def opinion(decode: Decoder, data: bytes, undamaged: bytes) -> str:
    """What one decoder says about ``data``: ``whole`` (as good as ``undamaged``), ``lossy: …`` or ``raises …``."""
    try:
        found = decode(data)
    except Exception as error:  # noqa: BLE001 - any error means that the decoder refuses it
        return raises(refusal(error))
    if data == undamaged:
        return WHOLE
    expected = decode(undamaged)
    if found.shape != expected.shape:
        return lossy(f"{_shape(found)} instead of {_shape(expected)} pixels")
    if found.dtype != expected.dtype:
        return lossy(f"{found.dtype} instead of {expected.dtype}")
    different = found != expected
    if different.ndim == 3:
        different = functools.reduce(np.logical_or, np.moveaxis(different, 2, 0))  # any(axis=2) takes ten times as long
    share = different.mean()
    return lossy(f"{max(share, 0.001):.1%} of the pixels differ") if share else WHOLE


def judge(data: bytes, undamaged: bytes) -> dict[str, str]:
    """What every installed reference decoder says about ``data``."""
    return {name: opinion(decode, data, undamaged) for name, decode in installed_references().items()}


def judge_oddity(data: bytes) -> tuple[dict[str, str], Decoded | None]:
    """What every installed reference decoder says about a legal file, and the picture that Pillow reads from it, if any."""
    said: dict[str, str] = {}
    seen: Decoded | None = None
    for name, decode in installed_references().items():
        try:
            found = decode(data)
        except Exception as error:  # noqa: BLE001 - any error means that the decoder refuses it
            said[name] = raises(refusal(error))
        else:
            said[name] = WHOLE
            seen = found if name == "pillow" else seen
    return said, seen


def unsound(data: bytes) -> str | None:
    """What is wrong with a file that should be good, by a quick check; None: nothing.

    A JPEG or PNG whose structure is whole from the first byte to the last is accepted: no decoder would notice more.
    Any other file is decoded by Pillow at a small size.
    """
    if jpeg_is_complete(data) or png_is_complete(data):
        return None
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as picture:
                picture.draft("L", (picture.width // 8, picture.height // 8))
                picture.load()
    except Exception as error:  # noqa: BLE001 - any error means that the decoder refuses it
        return raises(refusal(error))
    return None


def _shape(picture: Decoded) -> str:
    height, width = picture.shape[:2]
    return f"{width} × {height}"


def refusal(error: Exception) -> str:
    """A decoder's error in words, without memory addresses and other details that differ between runs."""
    text = re.sub(r" ?<_io.BytesIO object at 0x[0-9a-f]+>", "", str(error)).strip()
    text = re.sub(r" at 0x[0-9a-f]+>?", "", text)
    text = re.sub(r"OpenCV\(\S+\) \S+ error: ", "", text)  # the source location, on the machine that built it
    name = type(error).__name__
    return f"{name if name[0].isupper() else f'{type(error).__module__}.{name}'}: {text}"


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep what C libraries print about broken files off standard error."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
