"""The distribution contains what it should, and works if folders with the same names are in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "harness", "conformance")
_FACTORY = """
from torch.utils.data import DataLoader

def make(job):
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree, so that nothing of an earlier build gets into it."""
    import shutil

    folder = tmp_path_factory.mktemp("build")
    copy = folder / "tree"
    copy.mkdir()
    for name in _SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / name)
    _must_run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(copy)], folder
    )
    (made,) = folder.glob("*.whl")
    return made


def _must_run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_contains_every_module(wheel: Path) -> None:
    """Each module of the two folders is in the wheel, under the name badbatch, and no other module is."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.endswith(".py")}
    modules = {file.relative_to(ROOT) for folder in ("harness", "conformance") for file in (ROOT / folder).rglob("*.py")}
    assert held == {f"badbatch/{module.as_posix()}" for module in modules}


def test_the_wheel_contains_the_data_files(wheel: Path) -> None:
    """Type marks, files of known failures, templates and the licence are in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    data = [file for folder in ("harness", "conformance") for file in (ROOT / folder).rglob("*") if file.suffix in (".toml", ".j2")]
    assert data
    for file in [*data, ROOT / "harness" / "py.typed", ROOT / "conformance" / "py.typed"]:
        assert f"badbatch/{file.relative_to(ROOT).as_posix()}" in held
    assert any(name.endswith("/LICENSE") for name in held)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A python of a fresh environment that has the wheel; its dependencies are borrowed from this one."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    _must_run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)], home
    )
    own = Path(_must_run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], home).strip())
    # After the environment's own folder on the path; files that end in .pth are not read there, so neither is the
    # editable installation of this project.
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def test_it_runs_beside_folders_of_the_same_names(installed: Path, tmp_path: Path) -> None:
    """The suite runs from a folder with its own harness/ and conformance/, over a loader in one of them."""
    for name in ("harness", "conformance"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "harness" / "loading.py").write_text(_FACTORY, encoding="utf-8")
    where = "import badbatch.harness, badbatch.conformance as c; print(badbatch.harness.__file__, c.__file__)"
    for file in _must_run([str(installed), "-c", where], tmp_path).split():
        assert Path(file).is_relative_to(installed.parents[1])
    few = ["--loader-scenario", "clean", "--loader-workers", "0", "--loader-ranks", "1"]
    printed = _must_run([str(installed), "-m", "pytest", "--loader", "harness.loading:make", *few], tmp_path)
    assert "harness.loading:make" in printed
    assert " passed" in printed


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """``badbatch`` is a command of the environment, and knows its version."""
    assert "0.1.0" in _must_run([str(installed.with_name("badbatch")), "--version"], tmp_path)
