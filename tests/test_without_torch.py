"""torch is imported only where the loader, the source or the ranks need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for _needed in ("PIL", "faker"):
    pytest.importorskip(_needed)

import trials
from badbatch.conformance import scenarios
from badbatch.conformance.engine import questions
from badbatch.conformance.scenarios import topologies
from badbatch.harness.contract.job import Contract
from badbatch.harness.trial.spec import Topology


@pytest.fixture
def torchless(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine on which importing torch fails."""
    folder = tmp_path / "broken" / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('raise ImportError("there is no torch here", name="torch")\n', encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder.parent), str(trials.ROOT)])}


def run(loader: str, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """``badbatch run``."""
    command = [sys.executable, "-m", "badbatch.conformance", "run", loader, "--ranks", "1", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=environment, cwd=trials.ROOT
    )


def test_a_loader_without_torch_runs_without_torch(torchless: dict[str, str], tmp_path: Path) -> None:
    """numpy and Pillow over a folder of pictures: damage is judged, and no process of the run imports torch."""
    report = tmp_path / "report.json"
    options = [word for name in ("clean", "one-bad", "oddities", "three-epochs") for word in ("--scenario", name)]
    done = run("fixtures.loaders.pictures:pictures", torchless, "--workers", "0", *options, "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(report.read_text(encoding="utf-8"))
    assert data["summary"]["pass"] > 20
    assert "torch" not in data["versions"]


def test_a_source_that_needs_torch_says_so(torchless: dict[str, str]) -> None:
    """In one line, with what to do."""
    done = run("fixtures.loaders.honest:processes", torchless, "--workers", "0", "--scenario", "clean")
    assert done.returncode == 2
    assert "torch" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_several_ranks_need_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, their cells are not applicable, with the reason."""
    clean = scenarios.find("clean", "imagefolder")
    assert questions.stays_away(Contract(), Topology(0, 2), clean) == ""
    monkeypatch.setattr(topologies, "ranks_can_meet", lambda: False)
    assert "torch" in questions.stays_away(Contract(), Topology(0, 2), clean)
    assert questions.stays_away(Contract(), Topology(2, 1), clean) == ""
