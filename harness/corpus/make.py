"""Makes a corpus: gives chunks to processes, writes files and manifest beside the target, and renames the folder at the end."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from ..errors import UserError
from . import manifest
from .base import Chunk, CorpusKind, FileRecord, MadeFile, Recipe
from .damage import disk_faults
from .folders import Folder, LocalFolder, folder
from .manifest import Counts, corpus_json, digest_of, library_versions, line
from .readme import readme
from .recipe import checked, kind_of, without_faults, without_pipes
from .verify import strangers
from .workers import ordered

Progress = Callable[[int, int, int], None]
"""Called with samples done, samples in total, and bytes written."""


@dataclass
class _Done:
    """The result of one chunk."""

    counts: Counts
    samples: bytes
    """Lines of ``manifest.badbatch``."""
    files: bytes
    """Lines of ``files.badbatch``."""
    unwritten: list[MadeFile] = field(default_factory=list)
    """The files themselves, if only the first process can write them."""


def make(
    address: str,
    recipe: Recipe,
    *,
    jobs: int | None = None,
    force: bool = False,
    pipes: bool = True,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Make a corpus. The same recipe and library versions give the same bytes, whatever ``jobs`` is.

    Args:
        address: a local folder, or any address that fsspec knows; it must not exist yet, or be an empty folder.
        recipe: what to make; if it has an ``origin``, its ``samples`` are counted from the files there.
        jobs: number of processes; None: one for each processor.
        force: replace a folder that contains a corpus made by badbatch.
        pipes: whether named pipes may be among the faults.
        progress: called now and then with the progress.

    Returns:
        The content of ``corpus.badbatch``.

    Raises:
        UserError: the recipe is impossible, the target exists, or the disk is full. Nothing is left behind.
    """
    target = folder(address)
    recipe = _for_target(checked(_counted(recipe)), target)
    recipe = recipe if pipes else without_pipes(recipe)
    _refuse(target, recipe, force)
    kind = kind_of(recipe.kind)
    workplace = target.beside("making")
    if isinstance(target, LocalFolder):
        target.remove_abandoned("making")
    workplace.remove()
    workplace.create()
    _place.cache_clear()  # it caches the folders that it made, and those of a removed corpus no longer exist
    free = workplace.free_bytes() if isinstance(workplace, LocalFolder) else None
    counts = Counts()
    try:
        _fill(workplace, kind, recipe, counts, jobs or _processors(), free, progress)
        _put_in_place(workplace, target)
    except OSError as error:
        workplace.remove()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(_full(target, recipe, counts, free)) from error
        raise UserError(f"cannot write {target.address}: {error}") from error
    except BaseException:
        workplace.remove()
        raise
    return manifest.read_corpus(target)


def _counted(recipe: Recipe) -> Recipe:
    if recipe.origin is None:
        return recipe
    from .originals import originals

    if recipe.kind != "imagefolder":
        raise UserError(f"--from copies pictures, so it fits --kind imagefolder, not {recipe.kind}")
    if recipe.oddities:
        raise UserError("--from copies files as they are: oddities are made, so leave --oddities out")
    samples = sum(1 for _ in originals(Path(recipe.origin)))
    if not samples:
        raise UserError(f"--from {recipe.origin}: it has no pictures")
    return replace(recipe, samples=samples, origin=os.path.abspath(recipe.origin))


def _for_target(recipe: Recipe, target: Folder) -> Recipe:
    """The recipe without the faults that only a local file system supports, if the target is not local."""
    if target.local:
        return recipe
    placed = {name for name, cls in disk_faults(recipe.kind).items() if getattr(cls, "special", "missing") != "missing"}
    named = [choice.fault for choice in recipe.faults if choice.fault in placed]
    if named:
        raise UserError(f"--fault {named[0]} needs a local folder: {target.address} can only contain ordinary files")
    return without_faults(recipe, placed)


def _refuse(target: Folder, recipe: Recipe, force: bool) -> None:
    if recipe.origin is not None and target.local:
        inside = os.path.commonpath([recipe.origin, target.address])
        if inside in (recipe.origin, target.address):
            raise UserError(
                f"{target.address} and --from {recipe.origin} must not contain each other: originals are never touched"
            )
    if not target.exists():
        return
    if not force:
        raise UserError(
            f"{target.address} exists: give another folder, or --force to replace a corpus made by badbatch"
        )
    try:
        stranger = next(strangers(target), None)
    except UserError as error:
        raise UserError(f"--force replaces only a corpus: {error}") from error
    if stranger is not None:
        raise UserError(
            f"--force would remove {target.address}/{stranger}, which is not in the corpus's manifest: move it away first"
        )


def _put_in_place(workplace: Folder, target: Folder) -> None:
    if not target.exists():
        workplace.rename(target)
        return
    aside = target.beside("replaced")
    target.rename(aside)
    try:
        workplace.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.remove()


def _fill(
    workplace: Folder,
    kind: CorpusKind,
    recipe: Recipe,
    counts: Counts,
    jobs: int,
    free: int | None,
    progress: Progress | None,
) -> None:
    names = (manifest.MANIFEST,) if kind.one_file_a_sample else (manifest.MANIFEST, manifest.FILES)
    if recipe.samples < 4 * jobs:
        jobs = 1  # starting processes would cost more than the work
    outputs = [_Output(workplace, name) for name in names]
    try:
        work = functools.partial(_work, recipe, workplace.address if workplace.local else None)
        for done in ordered(work, kind.chunks(recipe), jobs):
            for made in done.unwritten:
                workplace.write(made)
            for output, lines in zip(outputs, (done.samples, done.files)):
                output.write(lines)
            counts.include(done.counts)
            if free is not None and counts.bytes * recipe.samples > 2 * free * max(counts.samples, 1):
                raise OSError(
                    errno.ENOSPC, os.strerror(errno.ENOSPC)
                )  # it will be full: report it now rather than after everything is written
            if progress is not None:
                progress(counts.samples, recipe.samples, counts.bytes)
    finally:
        for output in outputs:
            output.close()
    digests = {output.name: output.digest() for output in outputs}
    corpus = corpus_json(recipe, counts, library_versions(kind.libraries), digests)
    about = readme(corpus).encode("utf-8")
    corpus["readme"] = digest_of(about)
    for name, text in ((manifest.README, about), (manifest.CORPUS, json.dumps(corpus, indent=1).encode("ascii") + b"\n")):
        with workplace.open(name, "wb") as file:
            file.write(text)


class _Output:
    """A manifest file while it is written, with its digest."""

    def __init__(self, workplace: Folder, name: str) -> None:
        self.name = name
        self._file: IO[bytes] = workplace.open(name, "wb")
        self._hash = hashlib.sha256()
        self._length = 0

    def write(self, lines: bytes) -> None:
        self._file.write(lines)
        self._hash.update(lines)
        self._length += len(lines)

    def close(self) -> None:
        self._file.close()

    def digest(self) -> dict[str, object]:
        return {"sha256": self._hash.hexdigest(), "length": self._length}


def _work(recipe: Recipe, root: str | None, chunk: Chunk) -> _Done:
    """Make one chunk, in this or in another process. Files are written here if ``root`` is a local folder."""
    kind = kind_of(recipe.kind)
    place = _place(root) if root is not None else None
    counts, samples, files, unwritten = Counts(), [], [], []
    for made in kind.make(recipe, chunk):
        if place is not None:
            place.write(made)
        else:
            unwritten.append(made)
        counts.files += made.special != "missing"
        counts.bytes += len(made.data or b"")
        for record in made.records:
            counts.add(record)
            samples.append(line(record))
        if not kind.one_file_a_sample:
            files.append(line(_file_record(made)))
    return _Done(counts, b"".join(samples), b"".join(files), unwritten)


@functools.lru_cache(1)
def _place(root: str) -> LocalFolder:
    return LocalFolder(root)


def _file_record(made: MadeFile) -> FileRecord:
    digest = None if made.data is None else hashlib.sha256(made.data).hexdigest()
    length = None if made.data is None else len(made.data)
    return FileRecord(made.path, len(made.records), made.fault, made.special, digest, length)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _full(target: Folder, recipe: Recipe, counts: Counts, free: int | None) -> str:
    had = f" ({_megabytes(free)} were free)" if free is not None else ""
    if not counts.samples:  # the disk was full before the first chunk was done: measure a chunk in memory
        chunk = next(kind_of(recipe.kind).chunks(recipe))
        counts.samples = chunk.stop - chunk.start
        counts.bytes = sum(len(made.data or b"") for made in kind_of(recipe.kind).make(recipe, chunk))
    needed = counts.bytes * recipe.samples / counts.samples
    return (
        f"the disk of {target.address} is too small: about {_megabytes(needed)} are needed{had}; nothing was left on it"
    )


def _megabytes(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
