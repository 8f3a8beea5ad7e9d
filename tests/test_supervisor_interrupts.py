"""Interrupted, or killed, at any moment: all ends, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from badbatch.harness.processes.process_tree import state
from children import tied
from staging import (
    ON_STAGE,
    ROGUES,
    SOON_S,
    wait_until,
)

pytestmark = ON_STAGE


# Interrupted, or killed, at any moment.


class Program:
    """The supervising program, known by a mark in its environment that all its descendants inherit."""

    def __init__(self, folder: Path, loader: str = "rogue_loaders:torch_loader", then: str = "wait") -> None:
        self._mark = f"BADBATCH_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        (folder / "flag").unlink(missing_ok=True)
        self.flag = folder / "flag"
        self.scratch = folder / "scratch"
        self.process = subprocess.Popen(
            [sys.executable, str(ROGUES / "supervising.py"), loader, str(folder), then],
            env={**os.environ, name: value, "ROGUE_FLAG": str(self.flag)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=tied(),  # noqa: PLW1509
        )

    def hear(self, word: str) -> None:
        """Wait until it says this."""
        assert self.process.stdout is not None
        assert word == self.process.stdout.readline().strip()

    def family(self) -> list[int]:
        """All living processes that carry the mark."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and self._mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(int(name))
            except OSError:  # it has just ended, or is not ours
                continue
        return [pid for pid in found if state(pid) not in (None, psutil.STATUS_ZOMBIE)]

    def end(self) -> None:
        """Whatever a test has found, leave nothing."""
        for pid in self.family():
            os.kill(pid, signal.SIGKILL)
        self.process.wait(SOON_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def slowness() -> float:
    """How many times longer than on an idle machine a process takes to start here and now; at least 1."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)
    return max(1.0, (time.monotonic() - began) / 0.05)


Launch = Callable[..., Program]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts the supervising program."""
    started: list[Program] = []

    def one(**settings: Any) -> Program:
        started.append(Program(tmp_path, **settings))
        return started[-1]

    yield one
    for program in started:
        program.end()


def reach(moment: str, launch: Launch) -> Program:
    """Run the supervising program up to a certain moment."""
    if moment == "while torch is imported":
        program = launch()
        program.hear("starting")
        wait_until(lambda: len(program.family()) > 1, "the zygote has started")
    elif moment == "while the loader is imported":
        program = launch(loader="slow_to_import:factory")
        program.hear("starting")
        wait_until(program.flag.exists, "the import has begun")
    elif moment == "while trials hang":
        program = launch()
        program.hear("starting")
        program.hear("hung")
    else:
        program = launch(then="close")
        program.hear("starting")
        program.hear("hung")
    return program


@pytest.mark.parametrize(
    "moment", ["while torch is imported", "while the loader is imported", "while trials hang", "while it ends them"]
)
def test_an_interrupt_ends_all_within_two_seconds(launch: Launch, moment: str) -> None:
    """Ctrl-C at any moment: after two seconds no process of it is left, the program itself included."""
    program = reach(moment, launch)
    allowed = slowness()
    os.kill(program.process.pid, signal.SIGINT)
    began = time.monotonic()
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone")
    took = time.monotonic() - began
    assert took < 2.0 * max(allowed, slowness())


def test_an_impatient_second_interrupt_leaves_nothing_either(launch: Launch) -> None:
    """Ctrl-C while the first one is obeyed: what was begun is ended without the program."""
    program = reach("while trials hang", launch)
    os.kill(program.process.pid, signal.SIGINT)
    time.sleep(0.05)
    os.kill(program.process.pid, signal.SIGINT)
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone", 6.0 * slowness())


@pytest.mark.parametrize("moment", ["while torch is imported", "while the loader is imported", "while trials hang"])
def test_nothing_outlives_a_supervisor_that_is_killed(launch: Launch, moment: str) -> None:
    """kill -9 of the program at any moment: a few seconds later all that it started has ended, and its folder is removed."""
    program = reach(moment, launch)
    os.kill(program.process.pid, signal.SIGKILL)
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone", 5.0 * slowness())
    assert not program.scratch.exists()
