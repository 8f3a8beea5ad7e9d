"""Reports as files: which format belongs to an option, and where the report is written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...harness.errors import UserError
from ...harness.nearest import unknown
from .jsonfile import dumps_reports, must_be_writable, write_text
from .model import Report

FORMATS = ("json", "html", "junit", "write-known")
STANDARD_OUTPUT = Path("-")


def check_target(path: Path, directory: Path = Path("."), format: str = "") -> None:
    """Find out before a run whether its report could be written.

    Raises:
        UserError: it could not, and why. A known file never goes over a file that is there: reasons that were filled in
            would be lost.
    """
    if path == STANDARD_OUTPUT:
        return
    must_be_writable(directory / path)
    if format == "write-known" and (directory / path).exists():
        raise UserError(f"cannot write the known file {path}: it is there already; give the name of a new file")


def write(format: str, path: Path, reports: Sequence[Report], directory: Path = Path(".")) -> None:
    """Write reports in one of :data:`FORMATS`; ``-`` is standard output, another relative path starts from ``directory``.

    Raises:
        UserError: the file cannot be written.
    """
    check_target(path, directory, format)
    write_text_to(_text(format, reports), directory / path if Path(path) != STANDARD_OUTPUT else STANDARD_OUTPUT)


def write_text_to(text: str, path: Path) -> None:
    """Write a text to a file, or to standard output where the path is ``-``.

    Raises:
        UserError: the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(text, path)


def _text(format: str, reports: Sequence[Report]) -> str:
    if format == "json":
        return dumps_reports(reports)
    if format == "html":
        from . import html

        return html.dumps(reports)
    if format == "junit":
        from . import junit

        return junit.dumps(reports)
    if format == "write-known":
        from . import known_file

        return known_file.dumps(reports)
    raise UserError(unknown("report format", format, FORMATS))
