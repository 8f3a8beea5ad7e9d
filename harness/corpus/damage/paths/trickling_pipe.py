"""A pipe that delivers slowly."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from ...base import State
from . import PathFault


@fault("trickling-pipe", effect=Effect.SLOW)
@dataclass(frozen=True)
class TricklingPipe(PathFault):
    """A named pipe that delivers the whole picture slowly, while badbatch.harness.corpus.pipes writes into it."""

    special = "fifo"
    state = State.SLOW
    why = "it is a named pipe that delivers the picture slowly while a program writes into it, and never otherwise"
    seconds: float = 1.0
    """How long one delivery takes."""
