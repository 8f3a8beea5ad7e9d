"""The topologies in which every scenario is run."""

from __future__ import annotations

from collections.abc import Sequence

from ...harness.errors import UserError
from ...harness.trial.spec import Topology

DEFAULT_WORKERS = (0, 2)
DEFAULT_RANKS = (1, 2)
START_METHODS = ("fork", "spawn", "forkserver")


def topologies(
    workers: Sequence[int] = DEFAULT_WORKERS,
    ranks: Sequence[int] = DEFAULT_RANKS,
    start_methods: Sequence[str | None] = (None,),
) -> list[Topology]:
    """Workers × ranks × start methods, the simplest first; without workers the start method plays no part.

    Raises:
        UserError: a number or a start method that cannot be.
    """
    if not workers or not ranks:
        raise UserError("at least one number of workers and one of ranks is needed")
    if (least := min(workers)) < 0:
        raise UserError(f"a loader cannot have {least} workers")
    if (least := min(ranks)) < 1:
        raise UserError(f"there is at least one rank, not {least}")
    for method in start_methods:
        if method is not None and method not in START_METHODS:
            raise UserError(f"unknown start method {method!r}; there are {', '.join(START_METHODS)}")
    found: list[Topology] = []
    for world_size in sorted(set(ranks)):
        for number in sorted(set(workers)):
            for method in dict.fromkeys(start_methods) if number else (None,):
                found.append(Topology(number, world_size, method))
    return found
