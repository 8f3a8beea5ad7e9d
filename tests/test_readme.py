"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOADERS = (ROOT / "docs" / "loaders.md").read_text(encoding="utf-8")
_RACE = re.compile(r"\d+ of them never read")  # what workers had read ahead when they were ended


def _block(mark: str, page: str = README) -> str:
    """The code block that follows a mark."""
    _, _, rest = page.partition(f"<!-- {mark}:")
    found = re.match(r".*?```\w+\n(.*?)```", rest, re.DOTALL)
    assert found is not None, mark
    return found.group(1)


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a ``badbatch …`` command as the README writes it."""
    name, *arguments = shlex.split(command)
    assert name == "badbatch"
    return subprocess.run(
        [sys.executable, "-m", "badbatch.conformance", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_picture_is_what_is_printed(tmp_path: Path) -> None:
    """The failure in the README is the one that its command prints, line by line."""
    (command,) = re.findall(r"^\$ (badbatch run .*)$", README, re.MULTILINE)
    done = _run(command, tmp_path)
    assert done.returncode == 1, done.stderr
    assert _RACE.sub("", _block("picture")).strip() in _RACE.sub("", done.stdout)


def test_the_example_keeps_its_promises(tmp_path: Path) -> None:
    """The factory of the README passes, on clean data and with one bad sample, on one rank and on two, with and without workers."""
    (tmp_path / "loading.py").write_text(_block("example"), encoding="utf-8")
    done = _run("badbatch run loading:make --scenario clean --scenario one-bad --scenario remainder-one", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_skipping_loader_keeps_its_promises(tmp_path: Path) -> None:
    """The loader of docs/loaders.md passes where samples, and whole batches of them, are damaged."""
    (tmp_path / "loading.py").write_text(_block("example", LOADERS), encoding="utf-8")
    done = _run("badbatch run loading:skipping --scenario *-bad --scenario shuffled --scenario empty-tensor", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def _set_up_commands() -> list[str]:
    return re.findall(r"^(pip install .* && pytest .*)$", README, re.MULTILINE)


def test_both_set_up_commands_are_those_that_are_tried() -> None:
    """The commands of the README are those of the continuous integration, in which the project's own tests come last."""
    suite, tests = (command.partition(" && ") for command in _set_up_commands())
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert suite[0] in script
    assert f"{suite[2]} -q" in script
    assert tests[0] in script
    assert script[-1] == tests[2]
    assert f"    {suite[2]}\n" in (ROOT / "tox.ini").read_text(encoding="utf-8")


def _clone(home: Path) -> Path:
    """The tree as a fresh clone has it, with the changes that are not committed yet."""
    if (ROOT / ".git").exists():
        listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in names:
            if name and (ROOT / name).is_file():
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, home / name)
    else:  # an unpacked source distribution
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*_cache")
        shutil.copytree(ROOT, home, ignore=unwanted, dirs_exist_ok=True)
    return home


def _environment(home: Path) -> dict[str, str]:
    """A fresh virtual environment, as the variables of a shell in which it is active.

    pip, torch and the other dependencies are borrowed from the running one, after its own packages on the path; this
    project, which may be installed there, is not. Nothing is downloaded.
    """
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    borrowed = home / "borrowed"
    borrowed.mkdir()
    for folder in (Path(entry) for entry in sys.path if entry.endswith("site-packages")):
        for entry in folder.iterdir():
            if "badbatch" not in entry.name and not (borrowed / entry.name).exists():
                (borrowed / entry.name).symlink_to(entry)
    (own / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    for name in ("pip", "pytest"):  # a borrowed package has no command
        script = home / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{python}" -m {name} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "false",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
    }
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "PYTHON", "VIRTUAL_ENV", "COV_"))
    }
    return {**clean, **offline, "PATH": path}


@pytest.mark.timeout(600)  # an environment is made, and the project is installed in it twice
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["suite-first", "tests-first"])
def test_the_set_up_commands_work_in_a_fresh_clone(order: tuple[int, int], tmp_path: Path) -> None:
    """Each command of the README's set-up works as written from the root of a fresh clone, by itself and after the other.

    PYTEST_ADDOPTS narrows what runs, so that the commands themselves stay as they are written.
    """
    clone, environment = _clone(tmp_path / "clone"), _environment(tmp_path / "environment")
    narrowed = [
        "--loader-scenario=clean --loader-workers=0 --loader-ranks=1",
        "-p no:cacheprovider -k test_every_field_has_one_option",
    ]
    commands = _set_up_commands()
    for index in order:
        done = subprocess.run(
            ["bash", "-c", commands[index]],
            cwd=clone,
            env={**environment, "PYTEST_ADDOPTS": narrowed[index]},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"\d+ passed", done.stdout)
        assert ("badbatch: torch.utils.data:DataLoader" in done.stdout) == (index == 0)
        assert str(clone) in done.stdout  # pytest's own root: neither another tree nor another installation
