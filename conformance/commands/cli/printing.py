"""Prints what commands found, and writes it to the files that were asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...report.model import Report


def aside(targets: Mapping[str, Path]) -> bool:
    """Whether a report in another format is written to standard output, so that the text is printed to standard error."""
    return Path("-") in targets.values()


def terminal(aside: bool = False) -> tuple[int, bool]:
    """The width and the use of colour where a text is printed: standard output, or standard error if it is printed aside."""
    import shutil

    from ...report.terminal import WIDTH

    stream = sys.stderr if aside else sys.stdout
    if not stream.isatty():
        return WIDTH, False
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return shutil.get_terminal_size((WIDTH, 24)).columns, colour


def print_report(report: Report, quiet: bool, aside: bool = False) -> None:
    """Print a report; only its last line if ``quiet``."""
    from ...report import terminal as text_of

    width, colour = terminal(aside)
    text = (
        text_of.render_last_line(report, colour=colour)
        if quiet
        else text_of.render(report, width=width, colour=colour)
    )
    click.echo(text, err=aside, color=colour)


def write(targets: Mapping[str, Path], reports: Sequence[Report]) -> None:
    """Write reports to files.

    Args:
        targets: from the name of each format to its file.
    """
    from ...report.files import write as write_one

    for name, path in targets.items():
        write_one(name, path, list(reports))
