"""The words that promises and settings can have as values. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

OnDamage = Literal["raise", "skip", "substitute", "mark"]
AfterError = Literal["continue", "stop"]
Batches = Literal["short", "full"]
Tail = Literal["exact", "pad", "drop", "pad-batch"]
Readers = Literal["processes", "threads", "consumer"]
Resume = Literal["exact", "refuse", "none"]
ShortBatches = Literal["last", "per-worker"]
Order = Literal["seeded", "invariant", "free"]
Unshuffled = Literal["source", "per-worker", "free"]
BlastRadius = Literal["sample", "batch", "shard", "file"]

PROMISES: Mapping[str, tuple[str, ...]] = {
    "on_damage": get_args(OnDamage),
    "after_error": get_args(AfterError),
    "batches": get_args(Batches),
    "tail": get_args(Tail),
    "readers": get_args(Readers),
    "resume": get_args(Resume),
    "short_batches": get_args(ShortBatches),
    "order": get_args(Order),
    "unshuffled": get_args(Unshuffled),
    "blast_radius": get_args(BlastRadius),
}
"""The promises of a contract whose value is one of a few words, with these."""

Isolation = Literal["auto", "fork", "spawn"]
PersistentWorkers = Literal["auto", "always", "never"]
START_METHODS = ("fork", "spawn", "forkserver")
"""The methods to start a loader's workers."""


def words_of(choice: Any) -> tuple[str, ...]:
    """The words of one of the types above, in their order."""
    return get_args(choice)
