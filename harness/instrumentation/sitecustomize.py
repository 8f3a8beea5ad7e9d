"""Runs first in every interpreter that a process of a trial on disk starts; then runs the machine's own ``sitecustomize``."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import traceback


def _own() -> None:
    from badbatch.harness import instrumentation

    instrumentation.enter_from_environment()


def _next() -> None:
    """The ``sitecustomize`` that this one hides, if there is one."""
    home = os.path.dirname(os.path.abspath(__file__))
    rest = [entry for entry in sys.path if os.path.abspath(entry or ".") != home]
    sys.path[:] = rest
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        sys.modules["sitecustomize"] = module
        found.loader.exec_module(module)


try:
    _own()
except Exception:  # noqa: BLE001 - the user's interpreter must start even if badbatch fails here
    traceback.print_exc()
_next()
