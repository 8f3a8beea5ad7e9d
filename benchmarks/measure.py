"""One measured figure, and how it is shown."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure beside its aim."""

    what: str
    value: float
    unit: str
    """The unit of the value: ``times``, ``µs a sample``."""
    aim: float
    more_is_better: bool
    parts: str
    """The measurements that it was made from, to explain a surprising one."""

    @property
    def reached(self) -> bool:
        """Whether it is at least as good as its aim."""
        return self.value >= self.aim if self.more_is_better else self.value <= self.aim

    def __str__(self) -> str:
        bound = "at least" if self.more_is_better else "at most"
        sign = "reached" if self.reached else "missed"
        return f"{self.what:<58}{self.value:>9.3g} {self.unit:<16} aim: {bound} {self.aim:g}  {sign}\n    {self.parts}"


def seconds(action: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def quickest(*actions: Callable[[], object], rounds: int) -> list[float]:
    """The shortest time of each of several calls, in seconds, taken in turns: other load only adds time."""
    times = [[seconds(action) for action in actions] for _ in range(rounds)]
    return [min(several) for several in zip(*times, strict=True)]
