"""The temporary folder of a trial's processes: the trial's own, at a path short enough for the sockets that are made in it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

_LONGEST = 70  # bytes: multiprocessing puts sockets there, 32 bytes further, and their paths end at 107 (104 on macOS)


def temporary_folder(folder: Path) -> Path:
    """Make the temporary folder of the trial in ``folder``, and give the path to use for it.

    Where the path is long, a link of a short name leads there. All ranks of a trial have the same.
    """
    own = folder / "tmp"
    own.mkdir(exist_ok=True)
    if len(os.fsencode(own)) <= _LONGEST:
        return own
    link = _link(folder)
    with contextlib.suppress(OSError):  # another rank made it, or nothing can be made there
        link.symlink_to(own)
    return link if link.resolve() == own.resolve() else own


def remove_temporary_folder(folder: Path) -> None:
    """Remove it, with all in it."""
    link = _link(folder)
    if link.is_symlink() and os.readlink(link) == str(folder / "tmp"):
        link.unlink(missing_ok=True)
    shutil.rmtree(folder / "tmp", ignore_errors=True)


def _link(folder: Path) -> Path:
    digest = hashlib.sha1(os.fsencode(folder), usedforsecurity=False).hexdigest()[:12]
    return Path("/tmp") / f"badbatch-{digest}"
