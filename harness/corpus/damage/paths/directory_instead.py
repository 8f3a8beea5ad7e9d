"""A folder with a file's name."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...base import State
from . import PathFault


@fault("directory-instead", effect=Effect.ERROR)
@dataclass(frozen=True)
class DirectoryInstead(PathFault):
    """There is an empty folder where the file should be."""

    special = "directory"
    state = State.MISSING
    why = "a folder is at its path; a reader that lists only files does not see it"
