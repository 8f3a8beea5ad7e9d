"""What the consumer does in a scenario, where that depends on the topology: programs of phases, by name."""

from __future__ import annotations

from collections.abc import Callable

from ...harness.trial.phases import Batches, Phase, Program, Save, Topology


def _steps(samples: int, batch_size: int, ranks: int) -> int:
    """The batches of the rank that has fewest."""
    return max(1, samples // ranks // batch_size)


def every_stop(samples: int, batch_size: int, topology: Topology) -> Program:
    """One process saves the state before the first batch and after each; then a new process resumes from each of them.

    The process that saves goes on after each save, so a save that has an effect shows as well. Each resumed epoch is
    followed by another.
    """
    stops = range(_steps(samples, batch_size, topology.ranks) + 1)
    saving = (Phase(until=Batches(stop), then=Save(), same_process=stop > 0) for stop in stops)
    resumed = (Phase(load=stop, epochs=2) for stop in stops)
    return (*saving, Phase(same_process=True), *resumed)


def resumed_twice(samples: int, batch_size: int, topology: Topology) -> Program:
    """An epoch that is stopped and resumed twice, and one that is stopped in the second epoch."""
    last = _steps(samples, batch_size, topology.ranks)
    return (
        Phase(until=Batches(1), then=Save()),
        Phase(load=0, until=Batches(max(1, last - 2)), then=Save()),
        Phase(load=1, epochs=2, until=Batches(1), then=Save()),
        Phase(load=2, first_epoch=1, epochs=2),
    )


def at_the_end(samples: int, batch_size: int, topology: Topology) -> Program:
    """The state is saved when the epoch is over; the next epoch begins from it in a new process."""
    return (Phase(then=Save()), Phase(load=0, first_epoch=1))


def other_workers(samples: int, batch_size: int, topology: Topology) -> Program:
    """The state is loaded with other numbers of workers."""
    others = [workers for workers in (0, 2, 3) if workers != topology.workers]
    middle = max(1, _steps(samples, batch_size, topology.ranks) // 2)
    return (
        Phase(until=Batches(middle), then=Save()),
        *(Phase(topology=Topology(workers, topology.ranks), load=0) for workers in others),
    )


def other_ranks(samples: int, batch_size: int, topology: Topology) -> Program:
    """The state is loaded with other numbers of ranks."""
    others = [ranks for ranks in (1, 2, 4) if ranks != topology.ranks]
    return (
        Phase(until=Batches(1), then=Save()),
        *(Phase(topology=Topology(topology.workers, ranks), load=0) for ranks in others),
    )


PROGRAMS: dict[str, Callable[[int, int, Topology], Program]] = {
    "every-stop": every_stop,
    "twice": resumed_twice,
    "at-the-end": at_the_end,
    "other-workers": other_workers,
    "other-ranks": other_ranks,
}
"""From a name to the phases: functions of (samples, batch size, topology)."""
