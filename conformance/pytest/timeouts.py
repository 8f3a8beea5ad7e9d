"""The suite and pytest-timeout. The items have their own deadlines, so pytest-timeout's default does not apply to them.

A time that the user gives for this run, by ``--timeout`` on the command line or by a marker, is respected: the trial is
cut, and reported as inconclusive. Beyond that, pytest-timeout is the last backstop, for an error in badbatch itself: it
fires when no trial has ended for longer than any trial may take.
"""

from __future__ import annotations

import faulthandler
import signal
import tempfile
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any

import pytest

from ..engine.claims import ELSEWHERE_S
from ..engine.policy import CONFIRM
from ..options import Options
from .items import Backstop, TrialCheck
from .selection import is_typed

_GENEROUS = 2.0


def backstop_s(options: Options) -> float:
    """Seconds without any news from a trial after which badbatch must have failed: twice what a trial may take elsewhere."""
    return _GENEROUS * (CONFIRM * options.repeat * options.deadline + ELSEWHERE_S)


class Timeouts:
    """Gives each item its timeouts, and acts as pytest-timeout's timer for them."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._backstop_s = backstop_s(options)
        typed = is_typed(config, "--timeout") and config.getoption("timeout", None)
        self._typed_s = float(typed) if typed else None

    def set_on(self, items: Iterable[TrialCheck]) -> None:
        """After all plugins have added their markers: read the user's, and put the backstop before them."""
        if not self._config.pluginmanager.hasplugin("timeout"):
            return
        for item in items:
            marker = item.get_closest_marker("timeout")
            item.limit_s = self._typed_s if marker is None else _seconds_of(marker)
            item.add_marker(pytest.mark.timeout(self._backstop_s + (item.limit_s or 0), func_only=True), append=False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Set the timer of an item; each trial that ends resets it."""
        if not isinstance(item, TrialCheck) or threading.current_thread() is not threading.main_thread():
            return None  # as pytest-timeout does
        before = signal.signal(signal.SIGALRM, _fire)

        def start() -> None:
            signal.setitimer(signal.ITIMER_REAL, settings.timeout)

        def cancel() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            item.on_progress = item.cancel_timeout = None

        item.on_progress, item.cancel_timeout = start, cancel
        start()
        return True


def _fire(signum: int, frame: FrameType | None) -> None:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        raise Backstop([line.strip() for line in file.read().splitlines()])


def _seconds_of(marker: pytest.Mark) -> float | None:
    given = marker.args[0] if marker.args else marker.kwargs.get("timeout")
    return float(given) if given else None
