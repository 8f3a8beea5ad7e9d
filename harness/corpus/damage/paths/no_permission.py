"""A file that may not be read."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PathFault


@fault("no-permission", effect=Effect.ERROR)
@dataclass(frozen=True)
class NoPermission(PathFault):
    """The file may not be read by anybody; for a privileged user that does not take hold."""

    special = "no-permission"
    why = "reading it is not permitted"
