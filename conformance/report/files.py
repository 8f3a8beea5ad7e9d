"""Reports as files: where a format is written, and whether it can be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...harness.errors import UserError
from ...harness.nearest import unknown
from .formats import Format, report_formats
from .jsonfile import must_be_writable, write_text
from .model import Report

STANDARD_OUTPUT = Path("-")


def check_target(path: Path, directory: Path = Path("."), format: Format[Any] | None = None) -> None:
    """Find out before a run whether its report could be written.

    Raises:
        UserError: it could not, and why.
    """
    if path == STANDARD_OUTPUT:
        return
    must_be_writable(directory / path)
    if format is not None and not format.replaces and (directory / path).exists():
        raise UserError(f"cannot write {path}: it already exists; give the name of a new file")


def write(name: str, path: Path, reports: Sequence[Report], directory: Path = Path(".")) -> None:
    """Write reports in the format of that name; ``-`` is standard output, another relative path starts from ``directory``.

    Raises:
        UserError: there is no such format, or the file cannot be written.
    """
    formats = report_formats()
    if name not in formats:
        raise UserError(unknown("report format", name, formats))
    write_as(formats[name], path, reports, directory)


def write_as(format: Format[Any], path: Path, found: Any, directory: Path = Path(".")) -> None:
    """Write in a format what it takes: reports, or a comparison; the path as in :func:`write`.

    Raises:
        UserError: the file cannot be written.
    """
    check_target(path, directory, format)
    text = format.dumps(found)
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(text, directory / path)
