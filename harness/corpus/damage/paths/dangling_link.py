"""A link to a file that does not exist."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PathFault


@fault("dangling-link", effect=Effect.ERROR)
@dataclass(frozen=True)
class DanglingLink(PathFault):
    """A symbolic link to a file that does not exist: it is listed like any other file, but cannot be opened."""

    special = "dangling-link"
    why = "it is a symbolic link to nothing"
