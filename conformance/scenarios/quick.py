"""What ``--quick`` runs: the scenarios and topologies that find most of the broken loaders of ``fixtures/``.

Chosen by measuring, with ``python -m benchmarks.quick``; docs/benchmarks.md has the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...harness.trial.spec import Topology
from .base import Scenario
from .disk import DiskScenario

IN_MEMORY = (
    "one-sided-damage", "after-failure", "rebuilt", "remainder-one", "abort", "stop-iteration", "nan", "disk-full", "io-error",
    "slow-read",
)  # fmt: skip
ON_DISK = (
    "one-bad", "oddities", "damage-cut", "damage-encoding", "clean", "cut-shard", "early-break", "remainder-one", "three-epochs",
    "damage-size",
)  # fmt: skip

RELATED = ("remainder-one",)
"""The scenarios in which a relation may need a trial that is not selected: one more trial for each source."""


def asks(scenario: Scenario) -> bool:
    """Whether it is one of the ten of its table."""
    return scenario.name in (ON_DISK if isinstance(scenario, DiskScenario) else IN_MEMORY)


def topologies(workers: Sequence[int], ranks: Sequence[int], start_methods: Sequence[str | None]) -> list[Topology]:
    """The smallest and the largest of all topologies: without workers at one rank, and with both."""
    most = max(workers)
    found = [Topology(min(workers), min(ranks)), Topology(most, max(ranks), start_methods[0] if most else None)]
    return list(dict.fromkeys(found))
