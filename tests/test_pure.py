"""Judging needs no torch: everything to the right of a history is pure."""

from __future__ import annotations

import subprocess
import sys


def test_judging_imports_no_torch() -> None:
    """The checks, the suite and the reports import without torch: a recorded history is judged where there is none."""
    modules = ["checks", "diagnoses.diagnosis", "engine.single", "engine.suite", "known", "engine.judge"]
    imports = "".join(f"import badbatch.conformance.{module}; " for module in modules)
    script = f"import sys; {imports}sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (done.returncode, done.stderr)
