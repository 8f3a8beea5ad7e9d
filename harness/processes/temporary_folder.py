"""The temporary folder of a trial's processes: the trial's own, with a path short enough for sockets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

_LONGEST = 70  # bytes: multiprocessing makes sockets there with 32 more bytes, and socket paths end at 107 (104 on macOS)


def temporary_folder(folder: Path) -> Path:
    """Make the temporary folder of the trial in ``folder``, and return the path to use for it.

    If the path is long, a link with a short name points to it. All ranks of a trial use the same.
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
    """Remove the folder with all its content."""
    link = _link(folder)
    if link.is_symlink() and os.readlink(link) == str(folder / "tmp"):
        link.unlink(missing_ok=True)
    shutil.rmtree(folder / "tmp", ignore_errors=True)


def _link(folder: Path) -> Path:
    digest = hashlib.sha1(os.fsencode(folder), usedforsecurity=False).hexdigest()[:12]
    return Path("/tmp") / f"badbatch-{digest}"
