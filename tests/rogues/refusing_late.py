"""A loader that can be resumed, and looks at the topology of a state when it is iterated, as torchdata's StatefulDataLoader does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from badbatch.harness import Job, loader

from fixtures.loaders.resumable import Resumable


class Late(Resumable):
    """Its state says the workers too, and both numbers must be as before."""

    _of: tuple[int, int] | None = None

    def state_dict(self) -> dict[str, int]:
        """The state, with the number of workers."""
        return {**super().state_dict(), "workers": self._job.num_workers}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Accept any state."""
        self._of = state["ranks"], state["workers"]
        super().load_state_dict({**state, "ranks": self._job.world_size})

    def __iter__(self) -> Iterator[Any]:
        if self._of not in (None, (self._job.world_size, self._job.num_workers)):
            raise ValueError(f"this state is of {self._of}")
        return super().__iter__()


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",), resume="exact")
def late(job: Job) -> Late:
    """Refuses late."""
    return Late(job)
