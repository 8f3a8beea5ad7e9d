"""A relation that holds: as many errors with workers as without."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from badbatch.conformance.checks.base import Role, Violation, relation
from badbatch.harness.trial.spec import Topology


@relation(
    "calm-with-workers",
    title="Hail strikes as many samples with workers as without",
    why="It shows that a relation of another package has its trials run.",
    source="the tests of badbatch",
    roles=(
        Role("workers", "a trial with workers"),
        Role("calm", "the same trial without workers", lambda spec: dataclasses.replace(spec, topology=Topology(0, spec.topology.ranks))),
    ),
    exercised=lambda spec: spec.topology.workers > 0 and any(fault.kind == "hail" for fault in spec.plan.values()),
    explained_by=("error-kept",),
)
def calm_with_workers(trials: Any) -> Iterator[Violation]:
    """The errors that reached the consumers in the first epoch."""
    one, other = (sum(trials[role].ledger.first.errors) for role in ("workers", "calm"))
    if one != other:
        yield Violation(f"{other} errors", f"{one} errors")
