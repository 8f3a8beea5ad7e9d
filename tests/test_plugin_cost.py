"""A user who does not give ``--loader`` pays nothing for the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("torch", "numpy", "psutil", "rich", "click", "jinja2", "multiprocessing", "badbatch.conformance.engine.suite")
_TEST = f"""
import sys

def test_light():
    assert "badbatch.conformance.pytest.plugin" in sys.modules
    assert [name for name in {HEAVY!r} if name in sys.modules] == []
"""
_TIMED = """
import time
start = time.perf_counter()
import pytest
middle = time.perf_counter()
import badbatch.conformance.pytest.plugin
print((time.perf_counter() - middle) / (middle - start))
"""
_LEAST = 5  # of this many runs the smallest ratio counts: a busy machine only adds time


def _run(arguments: list[str], folder: Path) -> str:
    # Without the other plugins of this environment, which may import what they like.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    """A run of pytest without ``--loader`` imports neither torch nor numpy, nor any part of the suite."""
    (tmp_path / "test_light.py").write_text(_TEST, encoding="utf-8")
    _run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "badbatch.conformance.pytest.plugin", "test_light.py"], tmp_path)


def test_the_import_adds_little(tmp_path: Path) -> None:
    """To import the plugin takes less than a fifth of what it takes to import pytest itself."""
    ratios = [float(_run(["-c", _TIMED], tmp_path)) for _ in range(_LEAST)]
    assert min(ratios) < 0.2
