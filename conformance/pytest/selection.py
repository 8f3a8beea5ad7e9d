"""What one run of pytest runs: the suite, the user's own tests, or both."""

from __future__ import annotations

import dataclasses

import pytest

ROOT = "badbatch"
"""The beginning of the suite's node ids: ``badbatch::one-bad[workers=2]::no-lost-batches``."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """What a command line selects."""

    suite: bool
    """Whether the suite is added."""
    named: tuple[str, ...] = ()
    """Node ids of the suite that were named; none: all of them."""
    own: tuple[str, ...] | None = None
    """The paths that pytest collects the user's own tests from; None: those that it would collect without badbatch."""


def select(config: pytest.Config, has_loader: bool) -> Selection:
    """Decide what runs.

    The user's own tests are never left out silently: they run whenever pytest would collect them without badbatch. The
    suite is added if no path is given, if ``--loader`` is on the command line, or if node ids of the suite are named.

    Args:
        has_loader: a loader is given, on the command line or in the ini file.

    Raises:
        pytest.UsageError: two parts of the command line contradict each other.
    """
    only, off = bool(config.getoption("loader_only")), bool(config.getoption("loader_off"))
    given = list(config.args) if config.args_source is pytest.Config.ArgsSource.ARGS else []
    named = tuple(arg for arg in given if arg.startswith((f"{ROOT}::", f"{ROOT}["))) if has_loader else ()
    paths = tuple(arg for arg in given if arg not in named)
    if only and off:
        raise pytest.UsageError("--loader-only and --loader-off contradict each other: give one of them")
    if only and not has_loader:
        raise pytest.UsageError("--loader-only: there is no loader; name it with --loader pkg.module:attr")
    if only and paths:
        raise pytest.UsageError(f"--loader-only runs only the suite: leave out {paths[0]}, or --loader-only")
    if off and named:
        raise pytest.UsageError(f"--loader-off leaves the suite out: leave out {named[0]}, or --loader-off")
    if off or not has_loader:
        return Selection(suite=False)
    if only or named:
        return Selection(suite=True, named=named, own=paths)
    return Selection(suite=not paths or is_typed(config, "--loader"))


def is_typed(config: pytest.Config, flag: str) -> bool:
    """Whether a flag is on the command line itself: ``addopts`` and ``PYTEST_ADDOPTS`` are settings, like an ini key."""
    return any(str(arg) == flag or str(arg).startswith(f"{flag}=") for arg in config.invocation_params.args)
