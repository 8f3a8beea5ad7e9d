"""The options that several commands share: those of a suite, and one for each format of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ...options import BY_NAME, OPTIONS, Options, to_options
from ...report.formats import Format

F = TypeVar("F", bound=Callable[..., Any])

quiet = click.option("-q", "--quiet", is_flag=True, help="Print no progress, and only the last line of the report.")


def suite_options(command: F) -> F:
    """The suite's options from the table."""
    for option in reversed(OPTIONS):
        if option.field is not None:
            how: dict[str, Any] = {"metavar": option.metavar, "multiple": option.repeatable}
            if option.is_flag:
                how = {"is_flag": True}
            command = click.option(option.flag_for_cli, help=option.full_help, **how)(command)
    return command


def format_options(formats: Iterable[Format[Any]]) -> Callable[[F], F]:
    """An option for each format, that names the file to write."""

    def decorate(command: F) -> F:
        for format in sorted(formats, key=lambda format: format.name, reverse=True):
            command = click.option(f"--{format.name}", metavar="FILE", help=format.title)(command)
        return command

    return decorate


def options_of(given: dict[str, Any]) -> Options:
    """The settings of a run, from the values of a command's options.

    Raises:
        UserError: a value is wrong.
    """
    values = {name.replace("_", "-"): value for name, value in given.items()}
    return to_options(values, {name: option.flag_for_cli for name, option in BY_NAME.items()})


def targets_of(given: dict[str, Any], formats: Mapping[str, Format[Any]]) -> dict[str, Path]:
    """Where each report is written, taken out of the values of a command's options.

    Checked before the run, so that a wrong path costs no run.

    Raises:
        UserError: a file cannot be written there.
    """
    from ...report.files import check_target

    paths = {name: given.pop(name.replace("-", "_"), None) for name in formats}
    found = {name: Path(path) for name, path in paths.items() if path}
    for name, path in found.items():
        check_target(path, format=formats[name])
    return found


def command_line() -> str:
    """The command line, as it was typed."""
    return str(click.get_current_context().find_root().obj or "")
