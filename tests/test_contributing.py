"""Each example of CONTRIBUTING.md is one file: added to a copy of the tree, with no other change, it works."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "conformance")
EXAMPLES = {
    path: text
    for text in re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    for path in re.findall(r"\A# (\S+\.py)\n", text)
}
"""From the path at the top of an example to its text."""
LOADERS = """
from badbatch.harness import loader
from torch.utils.data import DataLoader


def plain(job):
    return DataLoader(job.dataset, batch_size=job.batch_size, shuffle=job.shuffle, drop_last=job.drop_last)


@loader(sources=("map",))
def nothing(job):
    return []


@loader(sources=("map",))
def gives_up(job):
    try:
        return list(plain(job))
    except OSError:
        return []


@loader(sources=("map",))
def halves(job):
    size = job.batch_size // 2 if job.num_workers else job.batch_size
    return DataLoader(job.dataset, batch_size=size, num_workers=job.num_workers)
"""
BACKWARDS = """
from badbatch.harness import loader
from loaders import plain

backwards = loader(sources=("backwards",))(plain)
"""
CELL = ("--workers", "0", "--ranks", "1")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A folder from which a copy of the two packages is imported, as ``badbatch``."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / "badbatch" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def touched(tree: Path) -> set[str]:
    """The files of the copy that the repository does not have, or has with another content."""
    found = set()
    for name in PACKAGES:
        for path in (tree / "badbatch" / name).rglob("*"):
            original = ROOT / path.relative_to(tree / "badbatch")
            if path.is_file() and "__pycache__" not in path.parts and not (
                original.is_file() and filecmp.cmp(path, original, shallow=False)
            ):
                found.add(str(path.relative_to(tree / "badbatch")))
    return found


def add(tree: Path, path: str) -> None:
    """Write an example where its first line says."""
    target = tree / path if "/" not in path else tree / "badbatch" / path
    assert not target.exists()
    target.write_text(EXAMPLES[path], encoding="utf-8")


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command with the copy in place of the repository, in a folder with a few loaders."""
    (tree / "loaders.py").write_text(LOADERS, encoding="utf-8")
    (tree / "backwards.py").write_text(BACKWARDS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def badbatch(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command of the copy."""
    return run(tree, "badbatch.conformance", *arguments)


PROOFS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "harness/faults/sluggish.py": (("explain", "sluggish"), 0, "seconds=0.4"),
    "conformance/scenarios/caches.py": (("run", "loaders:plain", "--scenario", "cold-cache", *CELL), 0, "cold-cache"),
    "conformance/checks/short.py": (
        ("run", "loaders:gives_up", "--scenario", "one-bad", "--check", "no-short-epochs", *CELL), 1, "good samples arrive",
    ),
    "conformance/checks/lengths.py": (
        ("run", "loaders:halves", "--scenario", "clean", "--check", "same-length", "--workers", "2", "--ranks", "1"), 1,
        "20 batches came",
    ),
    "conformance/diagnoses/reading.py": (
        ("run", "loaders:nothing", "--scenario", "clean", *CELL), 1, "40 samples were offered, and none was read",
    ),
    "harness/sources/kinds/backwards.py": (
        ("run", "backwards:backwards", "--scenario", "one-bad", *CELL), 0, "one-bad",
    ),
    "window_adapter.py": (("run", "window_adapter:windowed", "--scenario", "one-bad"), 0, "every promise kept"),
    "conformance/report/formats/csv.py": (
        ("run", "loaders:plain", "--scenario", "clean", *CELL, "--csv", "-"), 0, "loader,trial,check,verdict",
    ),
    "conformance/report/observations/first_batch.py": (
        ("run", "loaders:plain", "--scenario", "one-bad", *CELL), 0, "s after the first request (median)",
    ),
}  # fmt: skip
"""For each example: a command that uses what it adds, the exit code, and a part of what is printed."""


def test_every_example_is_run() -> None:
    """The guide has an example for each kind of thing, and each is run below."""
    assert set(EXAMPLES) == set(PROOFS)


@pytest.mark.parametrize("path", PROOFS)
def test_an_example_touches_one_file(path: str, tree: Path) -> None:
    """What the example adds is used without a second edit, and is not there without the example."""
    arguments, code, said = PROOFS[path]
    add(tree, path)
    assert touched(tree) == ({path} if "/" in path else set())
    done = badbatch(tree, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in " ".join(done.stdout.split()) or said in done.stdout


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("harness/faults/sluggish.py", "faults", "sluggish"),
        ("conformance/scenarios/caches.py", "scenarios", "cold-cache"),
        ("conformance/checks/short.py", "checks", "no-short-epochs"),
        ("conformance/checks/lengths.py", "checks", "same-length"),
        ("conformance/diagnoses/reading.py", "diagnoses", "nothing-read"),
        ("harness/sources/kinds/backwards.py", "sources", "backwards"),
        ("conformance/report/formats/csv.py", "formats", "csv"),
    ],
)
def test_an_example_is_listed_and_explained(path: str, kind: str, name: str, tree: Path) -> None:
    """`badbatch list` names what is added, and the repository does not have it."""
    original = subprocess.run(
        [sys.executable, "-m", "badbatch.conformance", "list", kind], capture_output=True, text=True, timeout=60, check=True
    )
    assert name not in [line.split()[0] for line in original.stdout.splitlines()]
    add(tree, path)
    assert name in [line.split()[0] for line in badbatch(tree, "list", kind).stdout.splitlines()]


def test_an_added_format_is_an_option_of_pytest(tree: Path) -> None:
    """pytest offers a format that was added by one file, and writes it."""
    add(tree, "conformance/report/formats/csv.py")
    chosen = ("--loader-only", "--loader-scenario", "clean", "--loader-workers", "0", "--loader-ranks", "1")
    done = run(tree, "pytest", "--loader", "loaders:plain", *chosen, "--loader-csv", "out.csv", "-p", "no:cacheprovider", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loaders:plain,clean[workers=0],no-lost-batches,pass" in (tree / "out.csv").read_text(encoding="utf-8").splitlines()
