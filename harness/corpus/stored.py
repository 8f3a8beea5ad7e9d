"""What a trial has to know of the corpus that it reads."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Stored:
    """What a trial has to know of its corpus, so that it can be judged, and the corpus made again, where it is gone."""

    recipe: str
    """Of the corpus, as JSON text."""
    states: tuple[tuple[int, str], ...] = ()
    """(sample, state) of every sample that is not plainly good, in order: a value of
    :class:`~badbatch.harness.corpus.base.State`, or ``odd`` for a legal oddity."""
    files: tuple[tuple[str, int, int], ...] = ()
    """(path, first sample, number of samples) of every file, in order of the samples; paths are relative, with ``/``."""
    groups: tuple[int, ...] = ()
    """The first sample of every row group, where the files have such."""
    idle: tuple[tuple[int, str], ...] = ()
    """(sample, why) of every sample whose fault did not take hold when the corpus was made: it is as good as before."""

    nameless: tuple[int, ...] | None = None
    """The legal oddities whose pictures have no id mark: without a name beside it, such a picture cannot be told from another
    of them. None: not known, in trials that an earlier version stored."""

    endings: tuple[tuple[int, str], ...] = ()
    """(sample, ending) of every sample whose picture is in a shard with another ending than ``jpg``."""

    def with_state(self, *states: str) -> tuple[int, ...]:
        """The samples in any of these states."""
        return tuple(sample for sample, state in self.states if state in states)

    def path_of(self, sample: int) -> str:
        """The file that holds a sample, or should hold it; empty where there is none."""
        return next((path for path, first, count in self.files if first <= sample < first + count), "")

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stored:
        """The inverse of :meth:`to_json`, also after a trip through JSON text."""
        nameless = data.get("nameless")
        return cls(
            nameless=None if nameless is None else tuple(nameless),
            endings=tuple((sample, ending) for sample, ending in data.get("endings", ())),
            recipe=data["recipe"],
            states=tuple((sample, state) for sample, state in data["states"]),
            files=tuple((path, first, count) for path, first, count in data["files"]),
            groups=tuple(data["groups"]),
            idle=tuple((sample, why) for sample, why in data["idle"]),
        )
