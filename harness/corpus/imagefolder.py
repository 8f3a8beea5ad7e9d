"""The kind ``imagefolder``: ``<root>/<class>/<name>.jpg``, with other formats among the oddities."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ..errors import UserError
from ..identity.marks import MAX_ID, read_mark
from .base import Chunk, CorpusKind, DiskFault, MadeFile, Recipe, SampleRecord, State
from .damage.oddities import PictureOddity
from .damage.paths import PathFault
from .damage.pictures import Needs, PictureFault
from .draws import Lottery, draw, number
from .jpegparts import PNG_SIGNATURE, jpeg_part
from .oracles import state_of
from .originals import original_chunks
from .studio import Studio, studio
from .truth import judge, judge_oddity, unsound
from .words import file_stem, vocabulary

_CHUNK = 256
"""Samples in a chunk. It is constant, so that chunks do not depend on the machine."""


class ImageFolder(CorpusKind):
    """Pictures in one folder for each class, as torchvision's ``ImageFolder`` and others read them."""

    name = "imagefolder"
    one_file_a_sample = True
    libraries = ("pillow", "numpy", "faker", "opencv-python-headless", "opencv-python")
    formats = ("jpeg",)

    def check(self, recipe: Recipe) -> None:
        try:
            import PIL  # noqa: F401 - only to see whether it is installed
        except ImportError as error:
            raise UserError("making pictures needs Pillow: pip install 'badbatch[corpus]'") from error
        if recipe.origin is None:
            vocabulary(recipe.seed)  # drawn once, before processes share it; also checks that Faker is installed
        if recipe.samples > MAX_ID + 1:
            raise UserError(f"a picture's id mark can name {MAX_ID + 1:,} samples, not {recipe.samples:,}")

    def chunks(self, recipe: Recipe) -> Iterator[Chunk]:
        if recipe.origin is not None:
            yield from original_chunks(Path(recipe.origin), _CHUNK)
            return
        for start in range(0, recipe.samples, _CHUNK):
            yield Chunk(start, min(start + _CHUNK, recipe.samples))

    def make(self, recipe: Recipe, chunk: Chunk) -> Iterator[MadeFile]:
        workshop = _workshop(recipe)
        for index, sample in enumerate(range(chunk.start, chunk.stop)):
            if chunk.payload is None:
                yield workshop.made(sample)
            else:
                yield workshop.copied(sample, chunk.payload[index], chunk.payload[index - 1])

    def undamaged(self, recipe: Recipe, sample: int) -> bytes:
        return _workshop(recipe).undamaged(sample)


KIND = ImageFolder()


class _Workshop:
    """What one process needs to make the samples of one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.lottery = Lottery.of_samples(recipe)
        self.studio: Studio = studio(recipe.seed, recipe.size, recipe.samples)

    def undamaged(self, sample: int) -> bytes:
        if self.recipe.origin is not None:
            for chunk in original_chunks(Path(self.recipe.origin), _CHUNK):
                if chunk.start <= sample < chunk.stop:
                    path: str = chunk.payload[sample - chunk.start]
                    return _contents(f"{self.recipe.origin}/{path}")
            raise UserError(f"{self.recipe.origin} has no file for sample {sample} any more")
        return self._stored(sample, self.lottery[sample])[0]

    def made(self, sample: int) -> MadeFile:
        seed, words = self.recipe.seed, self.studio.words
        fault = self.lottery[sample]
        data, ending = self._stored(sample, fault)
        stem = file_stem(seed, sample, words)
        odd = fault if isinstance(fault, PictureOddity) else None
        file = odd.rename(stem, ending, words) if odd else stem + ending
        label = words.classes[number(seed, sample, "class") % len(words.classes)]
        marked = self.studio.marked and (odd is None or odd.marked)
        neighbour = (sample + 1) % self.recipe.samples
        return self._finished(sample, f"{label}/{file}", data, fault, marked, lambda: self._stored(neighbour, fault)[0])

    def copied(self, sample: int, path: str, neighbour: str) -> MadeFile:
        """The user's own file, damaged if the lottery selects it and its format allows it."""
        data = _contents(f"{self.recipe.origin}/{path}")
        fault = self.lottery[sample]
        if isinstance(fault, PictureFault) and not _fits(fault.needs, data):
            fault = self._fitting(sample, data)
        complaint = unsound(data)
        if complaint is not None:  # the user's own file is damaged: it is copied unchanged, and the manifest says so
            digest = hashlib.sha256(data).hexdigest()
            why = f"the original is damaged itself: {complaint}"
            said = {"pillow": complaint}
            record = SampleRecord(
                sample, path, state=State.DAMAGED, why=why, said=said, sha256=digest, length=len(data), identity="path"
            )
            return MadeFile(path, data, (record,))
        return self._finished(sample, path, data, fault, False, lambda: _contents(f"{self.recipe.origin}/{neighbour}"))

    def _fitting(self, sample: int, data: bytes) -> DiskFault | None:
        """Another fault of the recipe that fits how this file is stored; None: none does."""
        source = draw(self.recipe.seed, sample, "another fault")
        return self.lottery.redraw(source, lambda cls: not issubclass(cls, PictureFault) or _fits(cls.needs, data))

    def _stored(self, sample: int, fault: DiskFault | None) -> tuple[bytes, str]:
        """The undamaged file in the format that the fault needs, and its extension."""
        if isinstance(fault, PictureOddity):
            return fault.encode(self.studio.canvas(sample))
        if isinstance(fault, PictureFault) and fault.needs == "png":
            return self.studio.canvas(sample).png(), ".png"
        if isinstance(fault, PictureFault) and fault.needs == "progressive":
            return self.studio.canvas(sample).jpeg(progressive=True, subsampling=2), ".jpg"
        return self.studio.jpeg(sample), ".jpg"

    def _finished(
        self, sample: int, path: str, data: bytes, fault: DiskFault | None, marked: bool, other: Callable[[], bytes]
    ) -> MadeFile:
        content = hashlib.sha256(data).hexdigest()
        identity: Literal["content", "path"] = "content" if marked else "path"
        if fault is None:
            record = SampleRecord(sample, path, sha256=content, length=len(data), content=content, identity=identity)
            return MadeFile(path, data, (record,))
        record = SampleRecord(sample, path, content=content, identity=identity)
        if isinstance(fault, PathFault):
            return _misplaced(record, fault, data)
        if isinstance(fault, PictureOddity):
            record = _judged_oddity(record, fault, data)
        elif isinstance(fault, PictureFault):
            undamaged = data
            data = fault.damage(undamaged, draw(self.recipe.seed, sample, "damage"), other)
            said = judge(data, undamaged)
            state, why = state_of(said)
            took_hold = state is not State.GOOD
            record = replace(record, state=state, why=why, said=said, fault=fault.to_json(), took_hold=took_hold)
        digest = hashlib.sha256(data).hexdigest()
        return MadeFile(path, data, (replace(record, sha256=digest, length=len(data)),))


def _judged_oddity(record: SampleRecord, oddity: PictureOddity, data: bytes) -> SampleRecord:
    """An oddity is legal by its format's rules. The first reference decoder decides whether it is good."""
    if oddity.in_name_alone:  # the bytes are those of any plain sample
        return replace(record, oddity=oddity.to_json(), took_hold=True)
    said, picture = judge_oddity(data)
    whole = picture is not None
    if whole and record.identity == "content" and read_mark(picture).id != record.id:
        record = replace(record, identity="path")
    return replace(
        record,
        state=State.GOOD if whole else State.CONTESTED,
        why="" if whole else f"pillow: {said['pillow']}",
        said=said,
        oddity=oddity.to_json(),
        took_hold=True,
    )


def _misplaced(record: SampleRecord, fault: PathFault, data: bytes) -> MadeFile:
    """What is at the path of a sample in place of an ordinary readable file."""
    record = replace(
        record, state=fault.state, why=fault.why, fault=fault.to_json(), took_hold=True, special=fault.special
    )
    if fault.special != "no-permission":
        return MadeFile(record.path, None, (record,), special=fault.special)
    record = replace(record, sha256=record.content, length=len(data))
    if not _permissions_hold():
        why = "reading it is not permitted, but this user may read anything: the fault has no effect"
        record = replace(record, state=State.GOOD, why=why, took_hold=False)
    return MadeFile(record.path, data, (record,), special=fault.special)


def _contents(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, os.fstat(descriptor).st_size)
        while more := os.read(descriptor, 1 << 20):
            data += more
        return data
    finally:
        os.close(descriptor)


def _fits(needs: Needs, data: bytes) -> bool:
    """Whether a file is stored as the fault needs it."""
    if needs == "any":
        return True
    if needs == "png":
        return data.startswith(PNG_SIGNATURE)
    sof = jpeg_part(data, "sof") if data.startswith(b"\xff\xd8") else None
    return sof is not None and (data[sof.start + 1] == 0xC2) == (needs == "progressive")


@functools.cache
def _permissions_hold() -> bool:
    """Whether this process cannot read a file without permission; measured, since root is not the only exception."""
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    try:
        os.chmod(path, 0)
        with open(path, "rb"):
            return False
    except PermissionError:
        return True
    finally:
        os.unlink(path)


@functools.lru_cache(1)
def _workshop_of(recipe: str) -> _Workshop:
    return _Workshop(Recipe.from_json(json.loads(recipe)))


def _workshop(recipe: Recipe) -> _Workshop:
    return _workshop_of(json.dumps(recipe.to_json()))
