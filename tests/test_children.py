"""What a test starts ends with it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from staging import wait_until

TEST = """
import sys
from children import child


def test_that_is_cut():
    with child([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        open("pid", "w").write(str(process.pid))
        process.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
def test_a_child_ends_with_a_test_that_times_out(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that a test started has ended after pytest-timeout ended pytest as a whole."""
    pytest.importorskip("pytest_timeout")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("--timeout=2", "--timeout-method=thread", timeout=60)
    assert result.ret != pytest.ExitCode.OK
    pid = int((pytester.path / "pid").read_text(encoding="utf-8"))
    wait_until(lambda: not psutil.pid_exists(pid), "the child has gone")
