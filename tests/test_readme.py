"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

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


def test_both_set_up_commands_are_those_that_are_tried() -> None:
    """The commands of the README are those of the continuous integration."""
    suite, tests = (command.partition(" && ") for command in re.findall(r"^(pip install .* && pytest .*)$", README, re.MULTILINE))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"\n{tests[0]}\n" in script
    assert f"\n{tests[2]}\n" in script
    assert f"    {suite[2]}\n" in (ROOT / "tox.ini").read_text(encoding="utf-8")
