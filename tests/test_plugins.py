"""Other packages add faults, scenarios, checks, diagnoses and loaders by entry points."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ADDITION = Path(__file__).parent / "addition" / "hail"
ENTRY_POINTS = """\
[badbatch.faults]
hail = hail.fault

[badbatch.scenarios]
hail = hail.scenario:HAIL

[badbatch.checks]
hail = hail.check
calm = hail.relation

[badbatch.diagnoses]
hail = hail.diagnosis

[badbatch.loaders]
sunshine = hail.load:sunshine
"""


def install(folder: Path, entry_points: str) -> None:
    """Lay a package out as an installer does."""
    shutil.copytree(ADDITION, folder / "hail", ignore=shutil.ignore_patterns("__pycache__"))
    info = folder / "hail-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hail\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def badbatch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, where that package is installed."""
    return subprocess.run(
        [sys.executable, "-m", "badbatch.conformance", *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True, timeout=100, check=False,
    )


def test_a_package_adds_one_of_each(tmp_path: Path) -> None:
    """Its loader is run by name in its scenario with its fault, and its check fails there and nowhere else, with its diagnosis."""
    install(tmp_path, ENTRY_POINTS)
    scenarios = ("--scenario", "hail", "--scenario", "one-bad", "--check", "mild-weather", "--check", "no-lost-batches")
    done = badbatch(tmp_path, "run", "sunshine", *scenarios, "--workers", "0", "--ranks", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mild-weather" in done.stdout
    assert "hail struck in sample 5. Put a roof over the antenna. [antenna-struck]" in " ".join(done.stdout.split())
    assert "sample 5 had its fault" not in done.stdout
    options = ("--scenario", "hail", "--check", "calm-with-workers", "--workers", "2", "--ranks", "1")
    compared = badbatch(tmp_path, "run", "sunshine", *options)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "1 passed" in compared.stdout
    assert "without workers" in badbatch(tmp_path, "explain", "calm-with-workers").stdout
    listed = badbatch(tmp_path, "list", "scenarios")
    assert "hail" in listed.stdout
    assert "A station on a hill" in badbatch(tmp_path, "explain", "hail").stdout


def test_the_page_shows_what_is_added_here() -> None:
    """The examples of docs/extending.md are those of the package above, word by word but for the imports."""
    page = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    for line in (ADDITION / "fault.py").read_text(encoding="utf-8").partition("@fault")[2].splitlines():
        assert line in page
    for module, name in (("scenario", "HAIL = "), ("check", "@check("), ("relation", "@relation("), ("diagnosis", "@diagnosis(")):
        assert name in page, module
    compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "extending.md", "exec")


def test_an_unknown_name_is_answered_with_those_that_are_there(tmp_path: Path) -> None:
    """A name without a colon is that of an entry point."""
    install(tmp_path, ENTRY_POINTS)
    done = badbatch(tmp_path, "run", "moonshine", "--workers", "0", "--ranks", "1")
    assert (done.returncode, "or as one of sunshine" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("group", ["badbatch.faults", "badbatch.checks", "badbatch.diagnoses", "badbatch.scenarios"])
def test_a_package_that_cannot_be_imported_is_one_line(tmp_path: Path, group: str) -> None:
    """The user learns which package to fix or to uninstall."""
    install(tmp_path, f"[{group}]\nhail = sleet:SLEET\n")
    done = badbatch(tmp_path, "list", "scenarios" if group in ("badbatch.faults", "badbatch.scenarios") else "checks")
    assert done.returncode == 2, done.stderr
    assert f"the entry point hail = sleet:SLEET in {group} of the package hail cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_diagnosis_with_an_impossible_order_is_one_line(tmp_path: Path) -> None:
    """A diagnosis that is to be tried before one that does not exist ends the command with exit code 2."""
    install(tmp_path, ENTRY_POINTS)
    module = tmp_path / "hail" / "diagnosis.py"
    module.write_text(module.read_text().replace('"false-end"', '"false-emd"'))
    done = badbatch(tmp_path, "list", "diagnoses")
    assert (done.returncode, done.stderr) == (
        2,
        "badbatch: the diagnosis 'antenna-struck' is declared to be before 'false-emd', which is unknown; did you mean 'false-end'?\n",
    )
