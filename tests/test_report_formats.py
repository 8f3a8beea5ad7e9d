"""A report format is one file: the options of the commands and of pytest are made from its registration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click
import pytest
from badbatch.conformance.commands.cli import badbatch
from badbatch.conformance.options import OPTIONS
from badbatch.conformance.report import files
from badbatch.conformance.report.formats import Format, comparison_formats, report_formats
from badbatch.harness.errors import UserError
from example_report import report


def options(command: str) -> dict[str, str]:
    """From each option of a command to its help."""
    found = badbatch.commands[command].params
    return {option.opts[0]: option.help or "" for option in found if isinstance(option, click.Option)}


def offered(formats: dict[str, Format[Any]], command: str) -> set[str]:
    """The formats among some that a command has an option for, with their own words."""
    there = options(command)
    return {name for name, format in formats.items() if there.get(f"--{name}") == format.title}


def test_commands_offer_what_is_registered() -> None:
    """`run` and `compare` have an option for each of their formats; `replay` and `judge` for those that one trial can fill."""
    assert offered(report_formats(), "run") == set(report_formats()) >= {"json", "html", "junit", "write-known"}
    assert offered(comparison_formats(), "compare") == set(comparison_formats()) >= {"json", "html", "markdown"}
    for command in ("replay", "judge"):
        assert offered(report_formats(), command) == {name for name, format in report_formats().items() if not format.complete}


def test_pytest_offers_what_is_registered() -> None:
    """pytest has a flag and an ini key for each format that does not say that it has its own."""
    in_pytest = {option.name for option in OPTIONS if "pytest" in option.places}
    assert in_pytest & set(report_formats()) == {name for name, format in report_formats().items() if format.in_pytest}


@pytest.mark.parametrize("name", report_formats())
def test_each_is_written(name: str, tmp_path: Path) -> None:
    """Each format writes a text; one that replaces no file refuses an existing one, and leaves it unchanged."""
    path = tmp_path / f"report{report_formats()[name].suffix}"
    files.write(name, path, [report(), dataclasses.replace(report(), loader="other:make")])
    written = path.read_text(encoding="utf-8")
    assert written
    if report_formats()[name].replaces:
        files.write(name, path, [report()])
        assert path.read_text(encoding="utf-8") != written
    else:
        with pytest.raises(UserError, match="it already exists"):
            files.write(name, path, [report()])
        assert path.read_text(encoding="utf-8") == written


def test_an_unknown_format_is_named() -> None:
    """The nearest name is in the message."""
    with pytest.raises(UserError, match="unknown report format 'jsn'; did you mean 'json'"):
        files.write("jsn", Path("report"), [report()])
