"""The user's own good files, for ``--from``: listed in a fixed order, and only ever read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from .base import Chunk

ENDINGS = (".jpg", ".jpeg", ".jpe", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".ppm", ".avif")


def originals(root: Path) -> Iterator[str]:
    """Paths of the picture files below ``root``, relative and with ``/``, sorted folder by folder.

    Raises:
        UserError: ``root`` is not a readable folder.
    """

    def walk(folder: str, within: str) -> Iterator[str]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            raise UserError(f"--from {root}: {error.strerror}: {error.filename}") from error
        for entry in entries:
            if entry.name.lower().endswith(ENDINGS) and entry.is_file():
                yield within + entry.name
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk(entry.path, f"{within}{entry.name}/")

    if not root.is_dir():
        raise UserError(f"--from {root}: there is no such folder")
    return walk(str(root), "")


def original_chunks(root: Path, size: int) -> Iterator[Chunk]:
    """The files in chunks of at most ``size``; the payload is their list of paths."""
    start, paths = 0, []
    for path in originals(root):
        paths.append(path)
        if len(paths) == size:
            yield Chunk(start, start + size, paths)
            start, paths = start + size, []
    if paths:
        yield Chunk(start, start + len(paths), paths)
