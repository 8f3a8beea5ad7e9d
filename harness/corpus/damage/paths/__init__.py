"""What can be at a sample's path in place of its file."""

from __future__ import annotations

from typing import ClassVar

from ...base import DiskFault, Level, Special, State


class PathFault(DiskFault):
    """At the sample's path is something other than its file, or nothing."""

    kinds = ("imagefolder",)
    level: ClassVar[Level] = "path"
    family = "path"
    special: ClassVar[Special]
    state: ClassVar[State] = State.DAMAGED
    why: ClassVar[str]
