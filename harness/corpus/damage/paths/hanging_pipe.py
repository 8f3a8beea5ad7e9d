"""A pipe without a writer."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...base import State
from . import PathFault


@fault("hanging-pipe", effect=Effect.STALL)
@dataclass(frozen=True)
class HangingPipe(PathFault):
    """A named pipe without a writer: opening it for reading never returns, as on a stalled network file system."""

    special = "fifo"
    state = State.HANGS
    why = "it is a named pipe without a writer: opening it for reading does not return"
