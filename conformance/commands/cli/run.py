"""``badbatch run``."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from ....harness.exit_codes import ExitCode
from ...options import FAILURES
from ...report.formats import report_formats
from .arguments import command_line, format_options, options_of, quiet, suite_options, targets_of
from .printing import aside, print_report, write


@click.command()
@click.argument("loader", metavar="LOADER")
@suite_options
@format_options(report_formats().values())
@quiet
def run(loader: str, quiet: bool, **given: Any) -> ExitCode:
    """Check the promises of LOADER (pkg.module:attr).

    Runs the conformance suite. The current directory is importable. The folders of failing trials are kept in .badbatch,
    for badbatch replay and badbatch judge. Ctrl-C, SIGTERM and SIGHUP end the run: the report over the trials that have a
    result is printed and written.
    """
    formats = report_formats()
    targets = targets_of(given, formats)
    options = options_of(given)
    from ...engine.suite import Suite
    from ..progress import Progress

    with Progress(quiet) as progress, Suite(loader, options, failures=FAILURES, command=command_line()) as suite:
        progress.begin(loader)
        suite.start()
        progress.begin(loader, len(suite.specs()))
        suite.prepare()
        interrupted = False
        try:
            report = suite.run(progress.judged)
        except KeyboardInterrupt:
            interrupted = True
            report = suite.so_far(interrupted=True)
    if interrupted:
        targets = {name: path for name, path in targets.items() if not formats[name].complete}
    try:
        write(targets, [report])
    finally:  # a full disk must not prevent the printed report
        with contextlib.suppress(*((OSError,) if interrupted else ())):  # the terminal may be closed
            print_report(report, quiet, aside(targets))
    if interrupted:
        raise KeyboardInterrupt
    return report.exit_code
