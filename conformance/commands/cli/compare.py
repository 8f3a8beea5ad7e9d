"""``badbatch compare``."""

from __future__ import annotations

from typing import Any

import click

from ....harness.exit_codes import ExitCode
from ...report.formats import comparison_formats
from .arguments import command_line, format_options, options_of, quiet, suite_options, targets_of
from .printing import aside, terminal


@click.command()
@click.argument("names", metavar="LOADER|REPORT.json...", nargs=-1, required=True)
@suite_options
@format_options(comparison_formats().values())
@quiet
def compare(names: tuple[str, ...], quiet: bool, **given: Any) -> ExitCode:
    """Compare several loaders.

    Runs the suite over each. A file written with --json (or by pytest with --loader-json) can be given in place of a
    loader, which is then not run. The exit code is the worst of the loaders'.
    """
    formats = comparison_formats()
    targets = targets_of(given, formats)
    options = options_of(given)
    from ...report import comparison
    from ...report.files import write_as
    from .. import compare as comparing
    from ..progress import Progress

    with Progress(quiet) as progress:
        found = comparing.gather(names, options, progress.begin, progress.judged, command_line())
    for name, path in targets.items():
        write_as(formats[name], path, found)
    if not quiet:
        width, colour = terminal(aside(targets))
        click.echo(comparison.render(found, width=width, colour=colour), err=aside(targets), color=colour)
    return found.exit_code
