"""The trials of a failing relation, as the rules of diagnoses see them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ..checks.base import Recorded


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The trials of a failing relation."""

    trials: Mapping[str, Recorded]
    """By role, the one that is asked about first."""

    @property
    def by_workers(self) -> list[Recorded]:
        """The trials, those with the fewest workers first."""
        return sorted(self.trials.values(), key=lambda trial: trial.spec.topology.workers)

    def lost_with_workers(self) -> Iterator[tuple[Recorded, npt.NDArray[np.int64]]]:
        """The trials with more workers that lack samples which arrived with the fewest, in the first epoch, and those samples."""
        first, *others = self.by_workers
        for trial in others:
            if trial.spec.topology.workers == first.spec.topology.workers:
                continue
            lost = np.flatnonzero((first.ledger.first.arrivals > 0) & (trial.ledger.first.arrivals == 0))
            if len(lost):
                yield trial, lost
