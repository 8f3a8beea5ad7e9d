"""A run that is interrupted prints and writes what it has, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from children import tied
from staging import SOON_S, wait_until

LOADER = "mine:make"
FACTORY = """
from badbatch.harness import loader
from torch.utils.data import DataLoader


@loader(sources=("map",))
def make(job):
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers)
"""
# The second begins when the first has its result; the third hangs until its deadline.
SCENARIOS = ("clean", "one-bad", "hung-read")


def begin(tmp_path: Path, command: list[str]) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Start a run, and wait until its second trial is kept, and so the first has its result, while the third is under way."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "mine.py").write_text(FACTORY, encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        preexec_fn=tied(),  # noqa: PLW1509
    )
    try:
        wait_until((tmp_path / "kept" / "one-bad-w2" / "ended.json").exists, "the second trial is kept", 90)
        family = psutil.Process(running.pid).children(recursive=True)
        assert running.poll() is None
    except BaseException:
        running.kill()
        running.communicate()
        raise
    return running, family


def end(running: subprocess.Popen[str], family: list[psutil.Process], tmp_path: Path, send: Callable[[], None]) -> tuple[str, str]:
    """Interrupt it; what it printed. Nothing of it may be left, neither process nor temporary file."""
    send()
    try:
        printed = running.communicate(timeout=SOON_S)
    finally:
        running.kill()
    _, alive = psutil.wait_procs(family, timeout=SOON_S)
    assert alive == []
    wait_until(lambda: not list((tmp_path / "tmp").iterdir()), "the temporary folder is empty")
    return printed


def suite(prefix: str) -> list[str]:
    """Options that narrow the suite to three trials, and keep them."""
    given = {"workers": "2", "ranks": "1", "deadline": "60", "keep": "kept", "check": "no-lost-batches"}
    return [*(f"--{prefix}{name}={value}" for name, value in given.items()), *(f"--{prefix}scenario={name}" for name in SCENARIOS)]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_reports_what_it_has(signum: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C, SIGTERM and SIGHUP all: the report is printed, every requested file is written, the code is 130."""
    files = ["--json", "report.json", "--junit", "report.xml", "--html", "report.html"]
    running, family = begin(tmp_path, ["badbatch.conformance", "run", LOADER, *suite(""), *files])
    out, err = end(running, family, tmp_path, lambda: running.send_signal(signum))
    assert running.returncode == 130
    assert err == "badbatch: interrupted; nothing is left running\n"
    assert re.search("interrupted: [12] of 3 trials have a result", out)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [trial["scenario"] for trial in data["trials"]] in (["clean"], ["clean", "one-bad"])
    case = next(ElementTree.parse(tmp_path / "report.xml").iter("testcase"))
    assert (case.get("classname"), case.get("name")) == ("badbatch.clean[workers=2]", "no-lost-batches")
    assert re.search("interrupted: [12] of 3", (tmp_path / "report.html").read_text(encoding="utf-8"))


def test_an_impatient_user_is_obeyed_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C while the first is obeyed ends the command; nothing is left then either."""
    running, family = begin(tmp_path, ["badbatch.conformance", "run", LOADER, *suite("")])

    def twice() -> None:
        running.send_signal(signal.SIGINT)
        time.sleep(0.05)
        running.send_signal(signal.SIGINT)

    _, err = end(running, family, tmp_path, twice)
    assert running.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_pytest_reports_what_it_has(signum: signal.Signals, tmp_path: Path) -> None:
    """Under pytest it is the same, with pytest's own exit code for an interrupt."""
    files = ["--loader-json", "report.json", "--loader-html", "report.html"]
    running, family = begin(tmp_path, ["pytest", "--loader", LOADER, "--loader-only", *suite("loader-"), *files])
    out, _ = end(running, family, tmp_path, lambda: running.send_signal(signum))
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert re.search("interrupted: [12] trials? ha(s|ve) a result", out)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [trial["scenario"] for trial in data["trials"]] in (["clean"], ["clean", "one-bad"])
    assert (tmp_path / "report.html").exists()
