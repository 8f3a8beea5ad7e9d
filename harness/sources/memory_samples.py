"""The samples of a source in memory one by one, for writers of other formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..contract.samples import Sample
from ..faults import Effect, Fault, Read
from ..plan import FaultPlan
from ..trial.event_log import Kind, Recorder
from .memory import Numbers


@dataclasses.dataclass(frozen=True)
class MemorySamples:
    """All samples in order of their ids. Picklable.

    A fault that changes the content of a sample takes effect when the changed sample is returned, and is recorded then. A fault
    of the read itself cannot be stored.
    """

    samples: int
    plan: FaultPlan
    recorder: Recorder

    def __call__(self) -> Iterator[Sample]:
        """Each sample."""
        numbers = Numbers(self.samples)
        for sample in range(self.samples):
            fault = self.plan.get(sample)
            if fault is None:
                yield Sample(sample, parsed=numbers[sample])
            else:
                yield self._struck(sample, fault, numbers)

    def _struck(self, sample: int, fault: Fault, numbers: Numbers) -> Sample:
        state = "odd" if fault.effect is Effect.LEGAL else "damaged"
        if fault.effect not in (Effect.VALUE, Effect.LEGAL):
            return Sample(sample, state, fault.kind, lost="the fault strikes while the sample is read")
        read = Read(
            sample=sample,
            value=lambda: numbers[sample],
            took_hold=lambda: self.recorder(Kind.FAULT, sample),
            attempt=lambda: 0,
        )
        value = fault.strike(read)
        if not isinstance(value, dict):
            return Sample(sample, state, fault.kind, lost=f"there is {value!r} in its place")
        return Sample(sample, state, fault.kind, parsed=value)
