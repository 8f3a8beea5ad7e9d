"""A file that may not be read."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PathFault


@fault("no-permission", effect=Effect.ERROR)
@dataclass(frozen=True)
class NoPermission(PathFault):
    """Nobody may read the file; for a privileged user this fault does not take hold."""

    special = "no-permission"
    why = "reading it is not permitted"
