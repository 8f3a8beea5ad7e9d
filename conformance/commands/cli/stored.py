"""``badbatch replay`` and ``badbatch judge``: what can be done with the folder of a trial."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ....harness.exit_codes import ExitCode
from ...options import BY_NAME
from ...report.formats import report_formats
from .arguments import format_options, quiet, targets_of
from .printing import aside, print_report, terminal, write

if TYPE_CHECKING:
    from ...report.model import Report

_OF_ONE_TRIAL = [format for format in report_formats().values() if not format.complete]


@click.command()
@click.argument("trial", metavar="TRIAL.json|FOLDER", type=click.Path(path_type=Path))
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep the new record in this folder.")
@click.option(
    "--keep-corpus",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Make the corpus of the trial in this folder, and keep it.",
)
@click.option("--isolation", metavar=BY_NAME["isolation"].metavar, help=BY_NAME["isolation"].full_help)
@format_options(_OF_ONE_TRIAL)
@quiet
def replay(
    trial: Path, keep: Path | None, keep_corpus: Path | None, isolation: str | None, quiet: bool, **given: Any
) -> ExitCode:
    """Run a stored trial again with the same settings, and judge it.

    A folder that contains the trials of a relation is run again as a whole.
    """
    how = BY_NAME["isolation"].value(isolation, "--isolation")
    targets = targets_of(given, report_formats())
    from ...engine import several

    report, histories = several.replay_stored(trial, keep, how, keep_corpus)
    code = _print_trials(report, histories, quiet, targets)
    if keep_corpus is not None and not quiet:
        where = shlex.quote(str(keep_corpus))
        click.echo(f"corpus kept: badbatch corpus show {where} lists its faults", err=aside(targets))
    return code


@click.command()
@click.argument("folder", metavar="TRIAL_FOLDER", type=click.Path(path_type=Path))
@format_options(_OF_ONE_TRIAL)
@quiet
def judge(folder: Path, quiet: bool, **given: Any) -> ExitCode:
    """Judge a recorded trial, or the trials of a relation, again. Nothing is run."""
    targets = targets_of(given, report_formats())
    from ...engine import several

    report, histories = several.judge_stored(folder)
    return _print_trials(report, histories, quiet, targets)


def _print_trials(report: Report, histories: list[Any], quiet: bool, targets: dict[str, Path]) -> ExitCode:
    from ...report import trial

    write(targets, [report])
    if quiet:
        print_report(report, quiet, aside(targets))
    else:
        width, colour = terminal(aside(targets))
        click.echo(trial.render(report, histories, width=width, colour=colour), err=aside(targets), color=colour)
    return report.exit_code
