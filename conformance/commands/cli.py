"""The ``badbatch`` command: parse, call, print, exit.

Nothing heavy is imported before a command runs, so that ``badbatch --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...harness.errors import BadbatchError, UserError
from ...harness.exit_codes import ExitCode, table
from ...harness.nearest import hint
from ...harness.stopping import stoppable
from ..options import BY_NAME, FAILURES, OPTIONS, Options, to_options
from ..report.formats import Format, comparison_formats, report_formats
from .kinds import KINDS

if TYPE_CHECKING:
    from ..report.model import Report


F = TypeVar("F", bound=Callable[..., Any])


class _Interrupted(Exception):
    """Ctrl-C, SIGTERM or SIGHUP, while a command ran."""


class _Group(click.Group):
    """Suggests commands similar to an unknown one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}{hint(args[0], self.list_commands(ctx))}.")
        return super().resolve_command(ctx, args)


class _Badbatch(_Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print an empty line for it
            raise _Interrupted from None


class _Corpus(_Group):
    """Loads the group of :mod:`badbatch.harness.corpus.cli` only when it is used, since its imports take time."""

    def _real(self) -> click.Group:
        from ...harness.corpus.cli import corpus

        return corpus

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._real().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._real().get_command(ctx, cmd_name)


_START = """
To begin:
badbatch run torch.utils.data:DataLoader --known torch   check a loader's promises
badbatch explain                                         how scenarios, trials and checks are related
badbatch list                                            the kinds of names
badbatch corpus make DIR                                 make a folder of damaged data
badbatch COMMAND --help                                  the options of a command"""


@click.group(
    cls=_Badbatch,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\nExit codes:\n" + table(),
)
@click.version_option(package_name="badbatch")
@click.pass_context
def badbatch(context: click.Context) -> None:
    """Check the promises of data loaders, with damaged data and misbehaving storage."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help() + "\n" + _START)


def _suite_options(command: F) -> F:
    """The suite's options from the table."""
    for option in reversed(OPTIONS):
        if option.field is not None:
            how: dict[str, Any] = {"metavar": option.metavar, "multiple": option.repeatable}
            if option.is_flag:
                how = {"is_flag": True}
            command = click.option(option.flag_for_cli, help=option.full_help, **how)(command)
    return command


def _formats(formats: Iterable[Format[Any]]) -> Callable[[F], F]:
    """An option for each format, that names the file to write."""

    def decorate(command: F) -> F:
        for format in sorted(formats, key=lambda format: format.name, reverse=True):
            command = click.option(f"--{format.name}", metavar="FILE", help=format.title)(command)
        return command

    return decorate


_OF_ONE_TRIAL = [format for format in report_formats().values() if not format.complete]


_quiet = click.option("-q", "--quiet", is_flag=True, help="Print no progress, and only the last line of the report.")


def _options(given: dict[str, Any]) -> Options:
    values = {name.replace("_", "-"): value for name, value in given.items()}
    return to_options(values, {name: option.flag_for_cli for name, option in BY_NAME.items()})


def _targets(given: dict[str, Any], formats: Mapping[str, Format[Any]]) -> dict[str, Path]:
    """Where each report is written, taken from the options.

    Checked before the run, so that a wrong path costs no run.
    """
    from ..report.files import check_target

    paths = {name: given.pop(name.replace("-", "_"), None) for name in formats}
    found = {name: Path(path) for name, path in paths.items() if path}
    for name, path in found.items():
        check_target(path, format=formats[name])
    return found


@badbatch.command()
@click.argument("loader", metavar="LOADER")
@_suite_options
@_formats(report_formats().values())
@_quiet
def run(loader: str, quiet: bool, **given: Any) -> ExitCode:
    """Check the promises of LOADER (pkg.module:attr).

    Runs the conformance suite. The current directory is importable. The folders of failing trials are kept in .badbatch,
    for badbatch replay and badbatch judge. Ctrl-C, SIGTERM and SIGHUP end the run: the report over the trials that have a
    result is printed and written.
    """
    formats = report_formats()
    targets = _targets(given, formats)
    options = _options(given)
    from ..engine.suite import Suite
    from .progress import Progress

    with Progress(quiet) as progress, Suite(loader, options, failures=FAILURES, command=_command()) as suite:
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
        _write(targets, [report])
    finally:  # a full disk must not prevent the printed report
        with contextlib.suppress(*((OSError,) if interrupted else ())):  # the terminal may be closed
            _print_report(report, quiet, aside=Path("-") in targets.values())
    if interrupted:
        raise _Interrupted
    return report.exit_code


def _command() -> str:
    """The command line, as it was typed."""
    return str(click.get_current_context().find_root().obj or "")


def _write(targets: dict[str, Path], reports: list[Report]) -> None:
    from ..report.files import write

    for name, path in targets.items():
        write(name, path, reports)


def _print_report(report: Report, quiet: bool, aside: bool = False) -> None:
    from ..report import terminal

    width, colour = _terminal(aside)
    text = (
        terminal.render_last_line(report, colour=colour)
        if quiet
        else terminal.render(report, width=width, colour=colour)
    )
    click.echo(text, err=aside, color=colour)


def _terminal(aside: bool = False) -> tuple[int, bool]:
    """The width and the use of colour where a report is printed: standard output, or standard error if the report is redirected."""
    import shutil

    from ..report.terminal import WIDTH

    stream = sys.stderr if aside else sys.stdout
    if not stream.isatty():
        return WIDTH, False
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return shutil.get_terminal_size((WIDTH, 24)).columns, colour


@badbatch.command()
@click.argument("names", metavar="LOADER|REPORT.json...", nargs=-1, required=True)
@_suite_options
@_formats(comparison_formats().values())
@_quiet
def compare(names: tuple[str, ...], quiet: bool, **given: Any) -> ExitCode:
    """Compare several loaders.

    Runs the suite over each. A file written with --json (or by pytest with --loader-json) can be given in place of a
    loader, which is then not run. The exit code is the worst of the loaders'.
    """
    formats = comparison_formats()
    targets = _targets(given, formats)
    options = _options(given)
    from ..report import comparison
    from ..report.files import write_as
    from . import compare as comparing
    from .progress import Progress

    with Progress(quiet) as progress:
        found = comparing.gather(names, options, progress.begin, progress.judged, _command())
    for name, path in targets.items():
        write_as(formats[name], path, found)
    aside = Path("-") in targets.values()
    if not quiet:
        width, colour = _terminal(aside)
        click.echo(comparison.render(found, width=width, colour=colour), err=aside, color=colour)
    return found.exit_code


@badbatch.command()
@click.argument("trial", metavar="TRIAL.json|FOLDER", type=click.Path(path_type=Path))
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep the new record in this folder.")
@click.option(
    "--keep-corpus",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Make the corpus of the trial in this folder, and keep it.",
)
@click.option("--isolation", metavar=BY_NAME["isolation"].metavar, help=BY_NAME["isolation"].full_help)
@_formats(_OF_ONE_TRIAL)
@_quiet
def replay(
    trial: Path, keep: Path | None, keep_corpus: Path | None, isolation: str | None, quiet: bool, **given: Any
) -> ExitCode:
    """Run a stored trial again with the same settings, and judge it.

    A folder that contains the trials of a relation is run again as a whole.
    """
    how = BY_NAME["isolation"].value(isolation, "--isolation")
    targets = _targets(given, report_formats())
    from ..engine import several

    report, histories = several.replay_stored(trial, keep, how, keep_corpus)
    code = _print_trials(report, histories, quiet, targets)
    if keep_corpus is not None and not quiet:
        where = shlex.quote(str(keep_corpus))
        click.echo(f"corpus kept: badbatch corpus show {where} lists its faults", err=Path("-") in targets.values())
    return code


@badbatch.command()
@click.argument("folder", metavar="TRIAL_FOLDER", type=click.Path(path_type=Path))
@_formats(_OF_ONE_TRIAL)
@_quiet
def judge(folder: Path, quiet: bool, **given: Any) -> ExitCode:
    """Judge a recorded trial, or the trials of a relation, again. Nothing is run."""
    targets = _targets(given, report_formats())
    from ..engine import several

    report, histories = several.judge_stored(folder)
    return _print_trials(report, histories, quiet, targets)


def _print_trials(report: Report, histories: list[Any], quiet: bool, targets: dict[str, Path]) -> ExitCode:
    from ..report import trial

    _write(targets, [report])
    aside = Path("-") in targets.values()
    if quiet:
        _print_report(report, quiet, aside)
    else:
        width, colour = _terminal(aside)
        click.echo(trial.render(report, histories, width=width, colour=colour), err=aside, color=colour)
    return report.exit_code


@badbatch.command()
@click.argument("name", metavar="[NAME]", nargs=-1)
def explain(name: tuple[str, ...]) -> None:
    """Explain a name or a word of badbatch.

    NAME is a check, a scenario, a fault, a diagnosis, a source, or a word of the reports (contested, flaky, topology
    …). Without a name: how they are related, and all names.
    """
    from . import articles

    width, colour = _terminal()
    text = articles.render(" ".join(name), width, colour) if name else articles.overview(width, colour)
    click.echo(text, color=colour)


@badbatch.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), required=False)
def list_names(kind: str | None) -> None:
    """List all names of a kind, with one line about each.

    Without a kind: the kinds of names.
    """
    from . import articles

    width, colour = _terminal()
    if kind is None:
        click.echo(articles.kinds(colour), color=colour)
        return
    click.echo(articles.listing(kind, width if sys.stdout.isatty() else None, colour), color=colour)


@click.pass_context
def _help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


badbatch.add_command(
    _Corpus("corpus", help="Make, verify and show corpora of damaged data.", invoke_without_command=True, callback=_help)
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the command: every error becomes one line and an exit code (:class:`ExitCode`)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    with stoppable():
        code = int(_run(arguments))
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = badbatch.main(args=given, prog_name="badbatch", standalone_mode=False, obj=shlex.join(["badbatch", *given]))
        sys.stdout.flush()
        return int(code or 0)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" ({context.command_path} --help)" if context is not None else ""
        click.echo(f"badbatch: {' '.join(error.format_message().split())}{hint}", err=True)
        return ExitCode.USAGE
    except (_Interrupted, KeyboardInterrupt, click.Abort):
        with contextlib.suppress(OSError):  # the terminal may be closed
            click.echo("badbatch: interrupted; nothing is left running", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.KEPT
    except BadbatchError as error:
        for line in str(error).splitlines():
            click.echo(f"badbatch: {line}", err=True)
        return ExitCode.USAGE if isinstance(error, UserError) else ExitCode.HARNESS
    except Exception:
        traceback.print_exc()
        click.echo("badbatch: this is a fault of badbatch itself, and says nothing about the loader", err=True)
        return ExitCode.HARNESS


if __name__ == "__main__":
    main()
