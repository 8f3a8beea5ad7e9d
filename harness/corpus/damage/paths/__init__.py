"""What can stand at a sample's path in place of its file."""

from __future__ import annotations

from typing import ClassVar

from ...base import DiskFault, Level, Special, State


class PathFault(DiskFault):
    """Something else stands at the sample's path, or nothing does."""

    kinds = ("imagefolder",)
    level: ClassVar[Level] = "path"
    family = "path"
    special: ClassVar[Special]
    state: ClassVar[State] = State.DAMAGED
    why: ClassVar[str]
