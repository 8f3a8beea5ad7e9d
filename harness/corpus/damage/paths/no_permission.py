"""A file that nobody has permission to read."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PathFault


@fault("no-permission", effect=Effect.ERROR)
@dataclass(frozen=True)
class NoPermission(PathFault):
    """Nobody has permission to read the file; for a privileged user this fault has no effect."""

    special = "no-permission"
    why = "reading it is not permitted"
