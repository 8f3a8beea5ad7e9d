"""A read that fails at first and succeeds when tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from .base import Effect, Fault, Read, fault
from .parameters import Within, check_parameters


@fault("transient", effect=Effect.TRANSIENT)
@dataclass(frozen=True)
class Transient(Fault):
    """The first reads of the sample fail with ``OSError``; a later one succeeds.

    This happens on network storage, in throttled object stores and on bad cables. Reads are counted over all processes,
    so it does not matter which worker tries again.
    """

    failures: Annotated[int, Within(1, 1_000_000)] = 1
    """How many reads of the sample fail."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        before = read.attempt()
        if before >= self.failures:
            return read.value()
        read.took_hold()
        raise OSError(f"sample {read.sample} cannot be read for now (failure {before + 1} of {self.failures})")
