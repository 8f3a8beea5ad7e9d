"""The JSON report: written for other programs, and read back to be shown or compared (docs/report-schema.md)."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...harness.errors import UserError
from .model import Report


def dumps(data: Any) -> str:
    """JSON as in all files of badbatch: in ASCII, since messages may contain surrogates that no encoding accepts."""
    return json.dumps(data, indent=1) + "\n"


def dumps_reports(reports: Sequence[Report]) -> str:
    """One report as an object; several, one for each loader, as a list of such objects."""
    data = [report.to_json() for report in reports]
    return dumps(data[0] if len(data) == 1 else data)


def read(path: Path) -> list[Report]:
    """The reports in a file that was written as JSON: one or several.

    Raises:
        UserError: no such file, or no report in it.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the report {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    found = data if isinstance(data, list) else [data]
    if not found or not all(isinstance(entry, dict) for entry in found):
        raise UserError(f"{path} contains no badbatch report")
    try:
        return [Report.from_json(entry) for entry in found]
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def must_be_writable(path: Path) -> None:
    """Find out before a run, not after it, that its report could not be written.

    Raises:
        UserError: there is no folder for the file, or it is a folder itself, or writing is not allowed.
    """
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"cannot write {path}: permission denied")


def write_text(text: str, path: Path) -> None:
    """Write a text file completely or not at all: a reader never sees a part of it.

    Raises:
        UserError: the file cannot be written.
    """
    must_be_writable(path)
    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device: there is nothing to replace
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it
    os.umask(mask)
    return mask
