"""All tests run in several processes; a module alone, and the suite over a loader, do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import conftest
import pytest

TESTS = Path(__file__).parent
UNASKED = {"numprocesses": None, "tx": [], "dist": "no", "usepdb": False, "collectonly": False, "loader": None}


def chosen(paths: list[Path], **options: Any) -> Any:
    """The options that pytest goes on with."""
    config = SimpleNamespace(option=SimpleNamespace(**(UNASKED | options)), args=[str(path) for path in paths])
    conftest.pytest_cmdline_main(cast(pytest.Config, config))
    return config.option


def test_all_tests_run_in_several_processes() -> None:
    """What the README says, ``pytest tests``, uses all processors."""
    option = chosen([TESTS])
    assert option.numprocesses > 1
    assert "loadgroup" == option.dist


@pytest.mark.parametrize(
    ("paths", "options"),
    [
        ([TESTS / "test_parallel.py"], {}),
        ([TESTS], {"loader": ["torch.utils.data:DataLoader"]}),
        ([TESTS], {"usepdb": True}),
        ([TESTS], {"collectonly": True}),
    ],
)
def test_what_runs_in_one_process(paths: list[Path], options: dict[str, Any]) -> None:
    """A module is done before workers have begun; a debugger needs the terminal; the suite has processes of its own."""
    option = chosen(paths, **options)
    assert (None, "no") == (option.numprocesses, option.dist)


@pytest.mark.parametrize("processes", [0, 7])
def test_what_was_asked_for_stays(processes: int) -> None:
    """``-n`` decides, also against several processes."""
    assert processes == chosen([TESTS], numprocesses=processes).numprocesses


def test_it_runs_without_xdist() -> None:
    """pytest-xdist comes with the extra for development; without it all runs in one process."""
    module = TESTS / f"{conftest.TOGETHER[0]}.py"
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--collect-only", "-q", str(module)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=TESTS.parent, timeout=120)
    assert (0, "") == (done.returncode, done.stderr), done.stdout


def test_the_slowest_modules_exist() -> None:
    """A name without a module would make all tests slower, and nothing would show it."""
    assert set(conftest.TOGETHER) < set(conftest.SLOWEST)
    assert [] == [name for name in conftest.SLOWEST if not (TESTS / f"{name}.py").exists()]
