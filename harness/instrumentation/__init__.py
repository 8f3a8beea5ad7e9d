"""Instruments every process of a trial on disk: it records which files are opened, and makes marked pictures crash Pillow.

A rank calls :func:`enter`; processes that it forks inherit it. A fresh interpreter that it starts imports
:mod:`.sitecustomize`, found through the environment, and enters by itself. Nothing heavy is imported before a file of
the corpus is opened.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .late_imports import when_imported
from .membership import membership, variables


def environment(folder: str | Path, rank: int, root: str | Path) -> dict[str, str]:
    """The variables that make interpreters started by this process enter the trial as well."""
    home = os.path.dirname(os.path.abspath(__file__))
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != home]
    return {"PYTHONPATH": os.pathsep.join([home, *rest]), **variables(folder, rank, root)}


def enter(folder: str, rank: int, root: str) -> None:
    """Instrument this process, and those that it forks."""
    from .opens import Opens

    sys.addaudithook(Opens(folder, rank, root))
    when_imported("PIL.Image", _teach_pillow)


def enter_from_environment() -> None:
    """The same for a fresh interpreter that belongs to a trial; others are not changed."""
    trial = membership()
    if trial is not None:
        enter(trial["folder"], trial["rank"], trial["root"])


def _teach_pillow() -> None:
    from .decoder import register

    register()
