"""The topologies in which every scenario is run."""

from __future__ import annotations

from collections.abc import Sequence

from ...harness.contract.choices import START_METHODS, PersistentWorkers
from ...harness.contract.job import Contract
from ...harness.errors import UserError
from ...harness.nearest import unknown
from ...harness.processes.group import ranks_can_meet
from ...harness.trial.phases import builds_several, logical_epochs
from ...harness.trial.spec import Topology
from .base import Scenario


def topologies(
    workers: Sequence[int],
    ranks: Sequence[int],
    start_methods: Sequence[str | None] = (None,),
    persistent: PersistentWorkers = "never",
) -> list[Topology]:
    """Workers × ranks × start methods × persistence, the simplest first; without workers the last two do not matter.

    Args:
        persistent: when persistent workers are used: at one rank in scenarios with a later epoch, for loaders that support
            them (auto), everywhere (always), nowhere (never).

    Raises:
        UserError: an invalid number or start method.
    """
    if not workers or not ranks:
        raise UserError("at least one number of workers and one of ranks is needed")
    if (least := min(workers)) < 0:
        raise UserError(f"a loader cannot have {least} workers")
    if (least := min(ranks)) < 1:
        raise UserError(f"there must be at least one rank, not {least}")
    for method in start_methods:
        if method is not None and method not in START_METHODS:
            raise UserError(unknown("start method", method, START_METHODS))
    found: list[Topology] = []
    for world_size in sorted(set(ranks)):
        for number in sorted(set(workers)):
            for method in dict.fromkeys(start_methods) if number else (None,):
                found.append(Topology(number, world_size, method))
                if number and (persistent == "always" or (persistent == "auto" and world_size == 1)):
                    found.append(Topology(number, world_size, method, persistent=True))
    return found


def unsupported(contract: Contract, topology: Topology) -> str:
    """Why a loader cannot be run in a topology; empty: it can."""
    if contract.workers is not None and topology.workers not in contract.workers:
        return f"the loader declares workers={contract.workers}"
    if contract.ranks is not None and topology.ranks not in contract.ranks:
        return f"the loader declares ranks={contract.ranks}"
    if topology.ranks > 1 and not contract.divisible:
        return "a class without a sampler parameter cannot be given the share of a rank: a factory can divide the samples itself"
    if topology.ranks > 1 and not ranks_can_meet():
        return "several ranks need a process group of torch, which is not installed"
    return ""


def asked(topology: Topology, scenario: Scenario, contract: Contract, persistent: PersistentWorkers) -> bool:
    """Whether a scenario is run in one of the topologies.

    Persistent workers matter only from the second epoch on, and leaks of a process show at one rank.
    """
    phases = scenario.phases
    if builds_several(phases) and topology.ranks > 1:
        return False
    if not topology.persistent or persistent == "always":
        return True
    return bool(contract.persistent_workers) and len(logical_epochs(phases)) > 1 and not builds_several(phases)
