"""What one trial is: everything that is needed to run it again, as one frozen value and one JSON file."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from ..contract.job import Contract
from ..contract.source_names import cell
from ..corpus.stored import Stored
from ..errors import UserError
from ..plain import build, to_plain
from ..plan import FaultPlan
from .phases import Phase, Program, logical_epochs, must_be_runnable, of_format_1
from .phases import Topology as Topology  # noqa: PLC0414 - part of a spec, and imported from here

FORMAT = 2
LEAVE_WITHIN_S = 1.0
"""The time in which helpers must end by themselves after their loader was closed and dropped."""
CLOSE_WITHIN_S = 10.0
"""DESIGN: after a timeout the loader can be closed within 10 s; the same holds after any other epoch."""

_TOO_EARLY_TO_STOP = 2  # errors in a row beyond one for each fault and each worker


@dataclasses.dataclass(frozen=True)
class TrialSpec:
    """One execution of one loader: the question that a :class:`~badbatch.harness.trial.history.History` answers."""

    loader: str
    """``pkg.module:attr``."""
    directory: str
    """Where the module is imported from: the user's current directory."""
    scenario: str
    source: str
    topology: Topology
    plan: FaultPlan
    contract: Contract = dataclasses.field(default_factory=Contract)
    samples: int = 40
    batch_size: int = 4
    shuffle: bool = False
    drop_last: bool = False
    seed: int = 0
    timeout_s: float = 0.0
    """The job's timeout; 0: none."""
    max_consecutive_skips: int | None = None
    phases: Program = (Phase(),)
    """What the consumer does, one after the other."""
    sample_every_s: float = 0.5
    """The interval at which the trial supervisor samples memory, threads and descriptors of the trial's processes."""
    step_s: float = 0.0
    """Length of the simulated training step."""
    lockstep: bool = False
    """One all_reduce in each step, as in distributed data parallel training."""
    deadline_s: float = 30.0
    """After this many seconds the supervisor kills the trial."""
    root: str | None = None
    """The corpus, for sources on disk."""
    stored: Stored | None = None
    """What the corpus contains; ``plan`` then has the faults that had an effect when it was made."""
    lazy_decode: bool = False
    """``job.decode`` gives pictures that are opened and not yet decoded."""
    repeat: int = 0
    """Which repetition of the same question this is."""

    def __post_init__(self) -> None:
        must_be_runnable(self.phases, self.topology)

    @property
    def epochs(self) -> int:
        """The number of logical epochs."""
        return len(logical_epochs(self.phases))

    @property
    def stops_early(self) -> bool:
        """Whether a phase leaves an epoch before its end."""
        return any(phase.stops_early for phase in self.phases)

    def in_phase(self, number: int) -> TrialSpec:
        """The trial with the topology of one of its phases."""
        topology = self.phases[number].topology
        return self if topology is None or topology == self.topology else dataclasses.replace(self, topology=topology)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """The topologies of the phases, each once."""
        return tuple(dict.fromkeys(phase.topology or self.topology for phase in self.phases))

    @property
    def most_ranks(self) -> int:
        """The ranks of the phase with the most ranks."""
        return max(topology.ranks for topology in self.topologies)

    @property
    def id(self) -> str:
        """Short, stable and readable; also the name of the trial's folder."""
        return f"{self.scenario}[{cell(self.topology, self.source)}]" + (f"#{self.repeat}" if self.repeat else "")

    @property
    def allowed_calls(self) -> int:
        """Calls of ``next()`` in which an epoch must end, on one rank: ceil(samples / batch_size), and an allowance.

        The allowance: one partial batch for each worker, one error for each sample with a fault, and the call that
        raises StopIteration, with one to spare.
        """
        return math.ceil(self.samples / self.batch_size) + self.topology.workers + len(self.plan) + 2

    @property
    def call_cap(self) -> int:
        """Calls after which the consumer gives up: enough to see every worker and rank deliver everything twice."""
        return self.allowed_calls * (2 * max(1, self.topology.workers) * self.topology.ranks + 1)

    @property
    def error_cap(self) -> int:
        """Errors in a row after which the consumer gives up."""
        return len(self.plan) + self.topology.workers + _TOO_EARLY_TO_STOP

    @property
    def quiet_s(self) -> float:
        """Seconds without an event and without work after which a trial counts as stalled.

        Never less than closing may take; a shorter deadline comes first.
        """
        return max(0.4 * self.deadline_s, min(4 * self.timeout_s + 4, 0.8 * self.deadline_s), CLOSE_WITHIN_S + 2)

    def to_json(self) -> dict[str, Any]:
        """A JSON object with all fields; the inverse of :meth:`from_json`."""
        phases = [phase.to_json() for phase in self.phases]
        return {"badbatch_trial": FORMAT, **to_plain(self), "phases": phases}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrialSpec:
        """The inverse of :meth:`to_json`; also reads format 1, which had no phases.

        Raises:
            UserError: not a trial, or one of another format.
        """
        fields = dict(data)
        version = fields.pop("badbatch_trial", None)
        if version not in (1, FORMAT):
            raise UserError(f"not a badbatch trial of format 1 or {FORMAT}: \"badbatch_trial\" is {version!r}")
        try:
            if version == 1:
                phases = of_format_1(fields.pop("epochs"), fields.pop("break_after"), fields.pop("rounds", 1))
            else:
                phases = tuple(Phase.from_json(phase) for phase in fields["phases"])
            if fields.get("stored") is not None:
                from ..corpus.damage import disk_faults

                disk_faults()  # registers them, so that the plan can be read
            return build(cls, fields, phases=phases)
        except KeyError as error:
            raise UserError(f"this badbatch trial is incomplete: it has no {error}") from error
        except (UserError, TypeError) as error:
            raise UserError(f"this badbatch trial is damaged: {error}") from error

    def write(self, path: Path) -> None:
        """Write the trial as JSON."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> TrialSpec:
        """Read a trial file.

        Raises:
            UserError: no such file, or no trial in it.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"cannot read the trial {path}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{path} is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise UserError(f"{path} contains no badbatch trial")
        return cls.from_json(data)
