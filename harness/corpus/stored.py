"""What a trial must know about the corpus that it reads."""

from __future__ import annotations

import dataclasses

from ..plain import Plain


@dataclasses.dataclass(frozen=True)
class Stored(Plain):
    """What is needed to judge a trial, and to make its corpus again if it no longer exists."""

    recipe: str
    """The recipe of the corpus, as JSON text."""
    states: tuple[tuple[int, str], ...] = ()
    """(sample, state) of every sample that is not simply good, in order: a value of
    :class:`~badbatch.harness.corpus.base.State`, or ``odd`` for a legal oddity."""
    files: tuple[tuple[str, int, int], ...] = ()
    """(path, first sample, number of samples) of every file, in order of the samples; paths are relative, with ``/``."""
    groups: tuple[int, ...] = ()
    """The first sample of every row group, if the files have row groups."""
    idle: tuple[tuple[int, str], ...] = ()
    """(sample, why) of every sample whose fault had no effect when the corpus was made: it is as good as before."""

    nameless: tuple[int, ...] | None = None
    """The legal oddities whose pictures have no id mark. Without a name, such pictures cannot be distinguished. None:
    not known, in trials that an earlier version stored."""

    endings: tuple[tuple[int, str], ...] = ()
    """(sample, extension) of every sample whose picture is in a shard with another extension than ``jpg``."""

    def with_state(self, *states: str) -> tuple[int, ...]:
        """The samples in any of these states."""
        return tuple(sample for sample, state in self.states if state in states)

    def path_of(self, sample: int) -> str:
        """The file that contains a sample, or should contain it; empty if there is none."""
        return next((path for path, first, count in self.files if first <= sample < first + count), "")
