"""Calls a function as soon as a module is imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def when_imported(module: str, call: Callable[[], object]) -> None:
    """Call ``then`` when the module is imported: now if it already is, otherwise right after its import."""
    if module in sys.modules:
        call()
        return
    sys.meta_path.insert(0, _Waiting(module, call))


class _Waiting:
    """A finder that finds nothing itself.

    It lets the others find the module, and calls after the module was executed.
    """

    def __init__(self, module: str, call: Callable[[], object]) -> None:
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
