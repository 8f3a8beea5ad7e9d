"""The versions of the libraries that a loader is made of: which imports count."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from badbatch.harness.contract.calling import resolve
from badbatch.harness.contract.libraries import library_versions
from badbatch.harness.processes.supervisor import Supervisor

FACTORY = """
from __future__ import annotations
import json
from typing import TYPE_CHECKING
from badbatch.harness import loader
from {package}.reading import samples
import {package}_beside

if TYPE_CHECKING:
    import hypothesis


@loader(on_damage="raise", sources=("jsonl",), workers=(0,))
def make(job):
    from . import writing
    return [samples(job)]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    """A project of several modules, importable; its name."""
    name = f"project_{request.node.name}"
    files = {
        f"{name}/__init__.py": "",
        f"{name}/loading.py": FACTORY.format(package=name),
        f"{name}/reading.py": "def samples(job):\n    import psutil\n",
        f"{name}/writing.py": "try:\n    import no_such_library\nexcept ImportError:\n    pass\nfrom PIL import Image\n",
        f"{name}/unused.py": "import rich\n",
        f"{name}_beside.py": "import click.testing\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield name
    for module in set(sys.modules) - known:
        if module.startswith(name):
            del sys.modules[module]


def test_the_imports_of_all_modules_of_the_project_count(package: str, tmp_path: Path) -> None:
    """Those in functions too, and those of modules beside it; not the standard library, nor what only a type checker imports."""
    expected = {name: importlib.metadata.version(name) for name in ("click", "pillow", "psutil")}
    assert resolve(f"{package}.loading:make").module == f"{package}.loading"
    assert expected == library_versions(f"{package}.loading", str(tmp_path))


def test_an_installed_library_is_named_itself() -> None:
    """With what the modules of the same package import, and not with all that the library imports elsewhere."""
    found = library_versions("click.testing", "/nowhere")
    assert found == {"click": importlib.metadata.version("click")}


def test_the_supervisor_reports_them(package: str, tmp_path: Path) -> None:
    """Beside Python and numpy, in a form that JSON can hold."""
    with Supervisor(f"{package}.loading:make", tmp_path) as supervisor:
        found = supervisor.versions
    assert list(found) == ["python", "numpy", "click", "pillow", "psutil"]
    assert json.loads(json.dumps(found)) == found
