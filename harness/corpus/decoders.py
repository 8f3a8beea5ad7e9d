"""What each decoder does with each picture fault: the table of ``docs/decoders.md``."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .damage import disk_faults
from .damage.pictures import PictureFault
from .draws import draw
from .manifest import library_versions
from .oracles import WHOLE
from .studio import studio
from .truth import Decoded, opinion, with_opencv, with_pillow

_SEED, _SIZE, _TURNS = 7, (256, 256), 12
_MEMORY = 8 << 30  # bytes of address space for a decoder: a decompression bomb needs 10 GB
_PATIENCE_S = 20.0


def with_pillow_lenient(data: bytes) -> Decoded:
    """Pillow with ``LOAD_TRUNCATED_IMAGES``, as many training scripts set it."""
    from PIL import Image, ImageFile

    before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, True
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            return np.asarray(picture)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def with_simplejpeg(data: bytes) -> Decoded:
    """simplejpeg in its strict default mode; it reads only JPEG."""
    import simplejpeg

    decoded: Decoded = simplejpeg.decode_jpeg(data)
    return decoded


def with_torchvision(data: bytes) -> Decoded:
    """``torchvision.io.decode_image``."""
    import torch
    from torchvision.io import decode_image

    decoded: Decoded = decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8)).permute(1, 2, 0).numpy()
    return decoded


@dataclass(frozen=True)
class Column:
    """One decoder of the table."""

    title: str
    module: str
    distribution: str
    decode: Callable[[bytes], Decoded]


COLUMNS = (
    Column("Pillow", "PIL", "pillow", with_pillow),
    Column("Pillow, LOAD_TRUNCATED_IMAGES", "PIL", "pillow", with_pillow_lenient),
    Column("OpenCV", "cv2", "opencv-python-headless", with_opencv),
    Column("simplejpeg", "simplejpeg", "simplejpeg", with_simplejpeg),
    Column("torchvision", "torchvision", "torchvision", with_torchvision),
)


def installed() -> tuple[Column, ...]:
    """The decoders that work here: installed, and able to decode a good picture."""
    good = studio(_SEED, _SIZE, 1).jpeg(0)
    found = (column for column in COLUMNS if importlib.util.find_spec(column.module))
    return tuple(column for column in found if _apart(column, good, good) == WHOLE)


def cases() -> Iterator[tuple[PictureFault, bytes, bytes]]:
    """Each picture fault with each set of its parameters: the fault, the damaged bytes, the undamaged bytes."""
    for name, cls in disk_faults("imagefolder").items():
        if not issubclass(cls, PictureFault) or cls.by_name:
            continue
        seen = []
        for turn in range(_TURNS):
            fault = cls.turn(turn, random.Random(turn))
            assert isinstance(fault, PictureFault)
            if fault in seen:
                break
            seen.append(fault)
            data, other = _stored(fault, 0), _stored(fault, 1)
            yield fault, fault.damage(data, draw(_SEED, turn, name), functools.partial(bytes, other)), data


def _stored(fault: PictureFault, sample: int) -> bytes:
    place = studio(_SEED, _SIZE, 1)
    if fault.needs == "png":
        return place.canvas(sample).png()
    if fault.needs == "progressive":
        return place.canvas(sample).jpeg(progressive=True, subsampling=2)
    return place.jpeg(sample)


def rows(columns: tuple[Column, ...]) -> Iterator[tuple[PictureFault, Mapping[str, str]]]:
    """Each case with what each decoder says, or that the decoder dies or does not end."""
    for fault, damaged, undamaged in cases():
        said = {}
        for column in columns:
            if fault.needs == "png" and column.module == "simplejpeg":
                said[column.title] = "–"
                continue
            said[column.title] = _apart(column, damaged, undamaged)
        yield fault, said


def _apart(column: Column, damaged: bytes, undamaged: bytes) -> str:
    """Run the decoder in its own process with limited memory, and return its result in words."""
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_ask, args=(theirs, column, damaged, undamaged), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_PATIENCE_S):
            return f"does not end within {_PATIENCE_S:.0f} s"
        return str(ours.recv())
    except EOFError:
        process.join()
        return f"dies (signal {-process.exitcode})" if process.exitcode and process.exitcode < 0 else "dies"
    finally:
        process.kill()
        process.join()


def _ask(connection: Any, column: Column, damaged: bytes, undamaged: bytes) -> None:
    import resource

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # C libraries print what they think of each file
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    connection.send(opinion(column.decode, damaged, undamaged))


def table() -> str:
    """The table as Markdown, with the versions of the decoders."""
    columns = installed()
    versions = library_versions(tuple(dict.fromkeys(column.distribution for column in columns)))
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    out = [
        "# What decoders do with damaged pictures",
        "",
        "Written by `badbatch corpus decoders`, not by hand. Each cell says what the decoder did with a picture that",
        "has this damage: **raises** or **returns None** (it reported an error), **damaged** (it returned a wrong picture without an",
        "error; the cell says how much of it differs), or **whole** (it returned the whole picture).",
        "",
        f"Decoders: {made}.",
        "",
        "| fault | " + " | ".join(column.title for column in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for fault, said in rows(columns):
        parameters = {name: value for name, value in fault.to_json().items() if name != "fault"}
        name = f"`{fault.kind}`" + "".join(f" {key}={value}" for key, value in parameters.items())
        out.append(f"| {name} | " + " | ".join(_cell(said[column.title]) for column in columns) + " |")
    return "\n".join(out) + "\n"


def _cell(words: str) -> str:
    if words == WHOLE:
        return "whole"
    if words.startswith("lossy: "):
        return f"**damaged**: {words.removeprefix('lossy: ')}"
    if words.endswith("returned None"):
        return "returns None"
    if words.startswith("raises "):
        return f"raises {words.removeprefix('raises ').partition(':')[0]}"
    return words
