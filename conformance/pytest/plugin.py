"""The pytest plugin: ``pytest --loader pkg.module:attr``.

Without ``--loader`` it does nothing and imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...harness.errors import UserError
from ..options import BY_NAME, OPTIONS, to_options
from ..report.formats import report_formats
from .selection import select


def pytest_addoption(parser: pytest.Parser) -> None:
    """Every option of the table, as a flag and as an ini key."""
    group = parser.getgroup("badbatch", "check the promises of data loaders (badbatch)")
    for option in OPTIONS:
        if "pytest" not in option.places:
            continue
        how: dict[str, Any] = {"action": "store_const", "const": True}
        if not option.is_flag:
            how = {"action": "append" if option.repeatable else "store", "metavar": option.metavar}
        description = option.full_help.replace("%", "%%")
        group.addoption(option.flag_for_pytest, dest=option.ini, default=None, help=description, **how)
        if option.in_ini:
            parser.addini(option.ini, option.full_help, type=option.ini_type, default=[] if option.repeatable else None)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Add the suite if ``--loader`` is given."""
    values, sources, folders = _given(config)
    loaders = values.pop("loader", None)
    selection = select(config, bool(loaders))
    if selection.own is not None:
        config.args[:] = selection.own
    if not selection.suite:
        return
    try:
        options = to_options(values, sources, folders)
        files = {
            name: path
            for name, format in report_formats().items()
            if format.in_pytest and (path := BY_NAME[name].value(values[name], sources[name], folders.get(name))) is not None
        }
    except UserError as error:
        raise pytest.UsageError(*str(error).splitlines()) from None
    from .session import Session, Summary

    session = Session(config, list(loaders or ()), options, list(selection.named), files)
    config.pluginmanager.register(session, "badbatch-session")
    config.pluginmanager.register(session.timeouts, "badbatch-timeouts")
    config.pluginmanager.register(Summary(session), "badbatch-summary")


def _given(config: pytest.Config) -> tuple[dict[str, Any], dict[str, str], dict[str, Path]]:
    """The values from the command line or otherwise the ini file, by option name, and which of the two each came from."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    folders: dict[str, Path] = {}
    file = config.inipath.name if config.inipath else "the ini file"
    for option in OPTIONS:
        if "pytest" not in option.places:
            continue
        value = config.getoption(option.ini)
        sources[option.name] = option.flag_for_pytest
        if value is None and option.in_ini:
            value = config.getini(option.ini) or None
            if value is not None:
                sources[option.name] = f"{option.ini} in {file}"
                if config.inipath is not None:
                    folders[option.name] = config.inipath.parent
        values[option.name] = value
    return values, sources, folders


@pytest.fixture
def faulty() -> Callable[[Any, Any], Any]:
    """Wrap any data set in a fault plan: ``faulty(dataset, {5: Segfault()})``."""
    from ...harness.sources.memory import faulty as wrap

    return wrap
