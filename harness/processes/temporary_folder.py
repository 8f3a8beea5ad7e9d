"""The temporary folder of a trial's processes: the trial's own, with a path short enough for sockets."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_LONGEST = 26  # bytes: with a slash and a name of 80 bytes, 107: the longest path that a UNIX socket may have (macOS: 103)
_PLACES = ("/tmp", "/var/tmp")
_RECORD = "tmp.short"  # in the trial's folder: a link to the private folder, so that each process of the trial finds it
_LINK = "t"  # in the private folder: a link to the temporary folder


def make_temporary_folder(folder: Path) -> None:
    """Make the temporary folder of the trial in ``folder``.

    If its path is long, a link with a short path points to it, in a folder that only this user can enter.
    """
    own = folder / "tmp"
    own.mkdir(exist_ok=True)
    if _is_short(own):
        return
    for place in _PLACES:
        with contextlib.suppress(OSError):  # nothing can be made there
            private = tempfile.mkdtemp(prefix="bb-", dir=place)
            (folder / _RECORD).symlink_to(private)
            Path(private, _LINK).symlink_to(own)
            return


def temporary_folder(folder: Path) -> Path:
    """The path to use for the temporary folder of the trial in ``folder``."""
    return Path(os.readlink(folder / _RECORD)) / _LINK if _is_linked(folder) else folder / "tmp"


def remove_temporary_folder(folder: Path) -> None:
    """Remove the folder with all its content."""
    record = folder / _RECORD
    if _is_linked(folder):
        with contextlib.suppress(OSError):
            (record / _LINK).unlink(missing_ok=True)
            os.rmdir(os.readlink(record))
    record.unlink(missing_ok=True)
    shutil.rmtree(folder / "tmp", ignore_errors=True)


def about_long_paths() -> str:
    """What users must know about the temporary folders of trials, in one line; empty: they have short paths."""
    if any(os.access(place, os.W_OK | os.X_OK) for place in _PLACES):
        return ""
    return (
        f"nothing can be made in {' or '.join(_PLACES)}, so the temporary folders of trials have long paths: where a loader's socket "
        'cannot be made there ("AF_UNIX path too long"), the loader is not at fault'
    )


def _is_linked(folder: Path) -> bool:
    """Whether the short path leads to this folder: a copy of a trial's folder has the record of the other one."""
    link = folder / _RECORD / _LINK
    return link.is_symlink() and os.readlink(link) == str(folder / "tmp")


def _is_short(path: Path) -> bool:
    return len(os.fsencode(path)) <= _LONGEST
