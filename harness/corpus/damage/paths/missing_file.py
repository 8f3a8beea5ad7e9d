"""A file that does not exist."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...base import State
from . import PathFault


@fault("missing-file", effect=Effect.ERROR)
@dataclass(frozen=True)
class MissingFile(PathFault):
    """Nothing is at the sample's path, though an index names it."""

    special = "missing"
    state = State.MISSING
    why = "nothing is at its path"
