"""What all tests share: pytest's own fixture for running pytest, the supervisor's stage, signals that come through, and workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest
import trials

pytest_plugins = ["pytester", "staging"]

SLOWEST = (
    "test_readme",
    "test_pipelines",
    "test_plugin",
    "test_honest",
    "test_plugin_selection",
    "test_unwritable",
    "test_interrupted_runs",
    "test_schema_loaders",
    "test_plugin_timeouts",
    "test_cli",
    "test_suite_disturbed",
)
"""The slowest modules, the slowest first."""
TOGETHER = ("test_honest", "test_schema_loaders")
"""Those whose tests share what takes the time."""

# A shell that starts something in the background has it ignore SIGINT, and nohup SIGHUP; so would all that the tests start. What is
# caught here is back at its default after an exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_ignored) is signal.SIG_IGN:
        signal.signal(_ignored, lambda number, frame: None)  # this process still ignores it


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run all tests in several processes, where pytest-xdist is installed and nothing else is asked for (``-n0``: in one).

    One more than there are processors: most tests wait for processes most of the time.
    """
    option = config.option
    asked = getattr(option, "numprocesses", 0) is not None or option.tx or option.dist != "no"
    elsewhere = hasattr(config, "workerinput") or option.usepdb or option.collectonly or option.loader
    if asked or elsewhere or not _whole(config.args):
        return
    option.numprocesses = (os.cpu_count() or 1) + 1
    option.dist, option.loadscopereorder = "loadgroup", False


def _whole(paths: Sequence[str]) -> bool:
    """Whether folders are asked for, and not single modules or tests: these are done before the workers have begun."""
    return all(os.path.isdir(path) for path in paths)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The slowest modules first, and spread over the workers; the others stay whole, since their tests share fixtures."""
    if not config.pluginmanager.hasplugin("xdist"):  # which is not there after `pip install .`
        return
    order = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    for item in items:
        if item.path.stem not in order or item.path.stem in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_runtest_teardown(nextitem: pytest.Item | None, item: pytest.Item) -> None:
    """What trials were run with ends with the module that ran them."""
    if nextitem is None or nextitem.path != item.path:
        trials.close()
