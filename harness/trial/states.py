"""The states that a loader returns in one phase of a trial and loads in another."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from ..errors import HarnessError


class States:
    """Asks a loader for its state and stores it in the trial's folder, one file for each phase and rank.

    Args:
        folder: the trial's.
        rank: of the process.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder = folder
        self._rank = rank

    def save(self, loader: Any, phase: int) -> int:
        """Store what ``loader.state_dict()`` returns; returns its size in bytes.

        Raises:
            Exception: what the loader raised, or pickle.
        """
        data = pickle.dumps(loader.state_dict())
        self._path(phase, self._rank).write_bytes(data)
        return len(data)

    def load(self, loader: Any, phase: int) -> None:
        """Call ``loader.load_state_dict`` with the state that this rank saved.

        If more ranks load than saved, the others get the state of rank ``rank % saved``, as when a job copies its
        checkpoints.

        Raises:
            HarnessError: no rank saved a state in that phase.
            Exception: what the loader raised.
        """
        saved = 0
        while self._path(phase, saved).exists():
            saved += 1
        if not saved:
            raise HarnessError(f"no state was saved in phase {phase}")
        data = self._path(phase, self._rank % saved).read_bytes()
        loader.load_state_dict(pickle.loads(data))

    def _path(self, phase: int, rank: int) -> Path:
        return self.folder / f"state-{phase}-{rank}.pickle"
