"""What a scenario is: a named plan and job settings, with the reason why users meet it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...harness.faults import Effect, Fault
from ...harness.faults.exit import Exit
from ...harness.faults.hang import Hang
from ...harness.plan import FaultPlan
from ...harness.sources.base import Question, in_memory
from ...harness.trial.phases import Program, Topology, plain
from .programs import PROGRAMS


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One scenario that every loader runs."""

    name: str
    why: str
    """Why users meet it."""
    fault: Fault | None = None
    where: str = "none"
    """Which samples have the fault: a key of :data:`WHERE`."""
    size: str = "given"
    """How many samples there are: a key of :data:`SIZES`."""
    needs_workers: bool = False
    """The fault kills or blocks the reading process, so only loaders with workers run it."""
    timed: bool = False
    """The job has a timeout."""
    program: str = ""
    """What the consumer does: a key of :data:`~badbatch.conformance.scenarios.programs.PROGRAMS`; empty: what
    ``settings`` say."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of :class:`~badbatch.harness.trial.spec.TrialSpec` that are not the default."""

    @property
    def phases(self) -> Program:
        """What the consumer does, if that is the same in all topologies."""
        program: Program = self.settings.get("phases", plain())
        return program

    def phases_in(self, topology: Topology, samples: int, batch_size: int) -> Program:
        """What the consumer does in a topology."""
        return PROGRAMS[self.program](samples, batch_size, topology) if self.program else self.phases

    @property
    def resumes(self) -> bool:
        """Whether it saves and loads the loader's state."""
        return bool(self.program)

    @property
    def limits_skips(self) -> bool:
        """Whether the job limits how many damaged samples in a row may be skipped."""
        return self.settings.get("max_consecutive_skips") is not None

    @property
    def strikes_process(self) -> bool:
        """Whether the fault kills or stops the reading process, or blocks all of its threads."""
        return self.needs_workers and not isinstance(self.fault, Hang)

    @property
    def kills(self) -> str:
        """How the fault ends the reading process: by a ``signal``, or with ``exit 1``; empty: it does not end it."""
        if self.fault is None or self.fault.effect is not Effect.CRASH:
            return ""
        return f"exit {self.fault.code}" if isinstance(self.fault, Exit) else "signal"

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that it applies to."""
        return tuple(source.name for source in in_memory())

    def question(self, source: str, given: int, batch_size: int, seed: int) -> Question:
        """What the source must prepare.

        Args:
            given: the number of samples that the user wants.
        """
        samples = self.samples(given, batch_size)
        return Question(samples, self.plan(samples, batch_size))

    def samples(self, given: int, batch_size: int) -> int:
        """The number of samples of the source."""
        return SIZES[self.size](given, batch_size)

    def plan(self, samples: int, batch_size: int) -> FaultPlan:
        """The concrete plan for a source of that size."""
        if self.fault is None:
            return FaultPlan()
        return FaultPlan({s: self.fault for s in WHERE[self.where](samples, batch_size) if 0 <= s < samples})

    @property
    def slow(self) -> bool:
        """Whether its trials mostly wait, so that many of them may run at the same time."""
        return self.needs_workers or self.timed or self.name in ("unpicklable-sample", "stop-iteration")


WHERE: dict[str, Callable[[int, int], Sequence[int]]] = {
    "none": lambda n, b: (),
    "one": lambda n, b: (b + 1,),
    "first": lambda n, b: (0,),
    "last": lambda n, b: (n - 1,),
    "batch": lambda n, b: range(b, 2 * b),
    "two-pairs": lambda n, b: (b + 1, b + 2, b + 4, b + 5),
    "run": lambda n, b: range(b, 4 * b),
    "odd-upper-half": lambda n, b: range(n // 2 + 1 - n // 2 % 2, n, 2),
    "all": lambda n, b: range(n),
    # The first of its batch, whether ranks or workers split by stride (up to b of them) or in blocks.
    "batch-start": lambda n, b: (b * b if b * b < n else b,),
}
"""From the name of a place to the ids: functions of (samples, batch size)."""

SIZES: dict[str, Callable[[int, int], int]] = {
    "given": lambda n, b: n,
    "tiny": lambda n, b: max(1, min(b - 1, 3)),
    "remainder-one": lambda n, b: n - n % b + 1,
    "partial-batches": lambda n, b: n - n % (4 * b) + b + b // 2,
    "few": lambda n, b: max(3 * b, 2 * b + 1),
    "few-singles": lambda n, b: 12,
    "none": lambda n, b: 0,
    "six-batches": lambda n, b: 6 * b,
}
"""From the name of a size to the number of samples: functions of (wanted samples, batch size)."""
