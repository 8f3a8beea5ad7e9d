"""What stands in every process of a trial on disk: it sees which files are opened, and makes marked pictures crash Pillow.

A rank calls :func:`enter`; what it forks inherits it. A fresh interpreter that it starts finds :mod:`.sitecustomize` by the
environment, and enters by itself. Nothing heavy is imported before a file of the corpus is opened.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from .membership import membership, variables


def environment(folder: str | Path, rank: int, root: str | Path) -> dict[str, str]:
    """The variables by which interpreters that this process starts enter the trial as well."""
    home = os.path.dirname(os.path.abspath(__file__))
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != home]
    return {"PYTHONPATH": os.pathsep.join([home, *rest]), **variables(folder, rank, root)}


def enter(folder: str, rank: int, root: str) -> None:
    """Watch this process, and those that it forks."""
    from .opens import Opens

    sys.addaudithook(Opens(folder, rank, root))
    _when_imported("PIL.Image", _teach_pillow)


def enter_from_environment() -> None:
    """The same for a fresh interpreter that belongs to a trial; others are left alone."""
    trial = membership()
    if trial is not None:
        enter(trial["folder"], trial["rank"], trial["root"])


def _teach_pillow() -> None:
    from .decoder import register

    register()


def _when_imported(module: str, call: Any) -> None:
    """Call once the module is there: now, or right after its import."""
    if module in sys.modules:
        call()
        return
    sys.meta_path.insert(0, _Waiting(module, call))


class _Waiting:
    """Finds nothing itself; it lets the others find the module, and calls after it was executed."""

    def __init__(self, module: str, call: Any) -> None:
        self._module = module
        self._call = call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """See :class:`importlib.abc.MetaPathFinder`."""
        if name != self._module:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            found = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if found is not None and found.loader is not None:
                self._follow(found.loader)
                return found
        return None

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._call()

        loader.exec_module = exec_module
