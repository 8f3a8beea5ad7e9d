"""The scenarios: named plans and job settings, each with the reason why a user meets it. Data, not code."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..harness.errors import UserError
from ..harness.faults import Fault
from ..harness.faults.abort import Abort
from ..harness.faults.empty_tensor import EmptyTensor
from ..harness.faults.exit import Exit
from ..harness.faults.frozen import Frozen
from ..harness.faults.hang import Hang
from ..harness.faults.hang_holding_lock import HangHoldingLock
from ..harness.faults.index_error import RaiseIndexError
from ..harness.faults.keyword_only_error import RaiseKeywordOnlyError
from ..harness.faults.killed import Killed
from ..harness.faults.nan import Nan
from ..harness.faults.none_sample import NoneSample
from ..harness.faults.null_field import NullField
from ..harness.faults.ragged_window import RaggedWindow
from ..harness.faults.raises import Raise
from ..harness.faults.segfault import Segfault
from ..harness.faults.slow import Slow
from ..harness.faults.stop_iteration import RaiseStopIteration
from ..harness.faults.transient import Transient
from ..harness.faults.two_argument_error import RaiseTwoArgumentError
from ..harness.faults.unpicklable_error import RaiseUnpicklableError
from ..harness.faults.unpicklable_sample import UnpicklableSample
from ..harness.job import DISK_SOURCES, MEMORY_SOURCES
from ..harness.plan import FaultPlan
from .checks.base import unknown


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One question that is put to every loader."""

    name: str
    why: str
    """Why a user meets it."""
    fault: Fault | None = None
    where: str = "none"
    """Which samples have the fault: a key of :data:`WHERE`."""
    size: str = "given"
    """How many samples there are: a key of :data:`SIZES`."""
    needs_workers: bool = False
    """The fault kills or blocks the process that reads, so it is put only to loaders with workers."""
    timed: bool = False
    """The job has a timeout."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of :class:`~badbatch.harness.spec.TrialSpec` that are not the default."""

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
        """Whether its trials mostly wait, so that many of them may run side by side."""
        return self.needs_workers or self.timed or self.name in ("unpicklable-sample", "stop-iteration")


WHERE: dict[str, Callable[[int, int], Sequence[int]]] = {
    "none": lambda n, b: (),
    "one": lambda n, b: (b + 1,),
    "first": lambda n, b: (0,),
    "last": lambda n, b: (n - 1,),
    "batch": lambda n, b: range(b, 2 * b),
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
}
"""From the name of a size to the number of samples: functions of (samples asked for, batch size)."""

_LOCKSTEP = {"lockstep": True}

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("clean", "Nothing is the first fault: a loader that fails here can be held to nothing else.", settings=_LOCKSTEP),
    Scenario("shuffled", "Training shuffles; each rank and worker must draw from the same permutation.", settings={"shuffle": True}),
    Scenario("drop-last", "Dropping the partial batch must cost at most one partial batch, not one for each worker.",
             size="partial-batches", settings={"drop_last": True}),
    Scenario("tiny", "A smoke test, or a class with three pictures: fewer samples than a batch, or than workers.", size="tiny"),
    Scenario("remainder-one", "The last batch holds one sample, and the ranks do not divide the set.",
             size="remainder-one", settings=_LOCKSTEP),
    Scenario("batch-of-one", "Evaluation runs with a batch size of one.", size="few-singles", settings={"batch_size": 1}),
    Scenario("no-samples", "A filter that matches nothing, or an empty shard.", size="none"),
    Scenario("one-bad", "One truncated file in the set: the commonest fault of all.", Raise(), "one", settings=_LOCKSTEP),
    Scenario("first-bad", "The very first read fails.", Raise(), "first"),
    Scenario("last-bad", "The very last read fails, when prefetching has ended.", Raise(), "last"),
    Scenario("whole-batch-bad", "A directory, or a shard's corner, is gone: every sample of one batch is damaged.",
             Raise(), "batch", settings=_LOCKSTEP),
    Scenario("run-of-bad", "A lost extent: three batches in a row are damaged.", Raise(), "run"),
    Scenario("one-sided-damage", "The damage lies on one rank: its share shrinks, and the others wait.",
             Raise(), "odd-upper-half", settings=_LOCKSTEP),
    Scenario("all-bad", "A wrong path or a missing mount: every read fails.", Raise(), "all"),
    Scenario("null-field", "A row whose feature is null.", NullField(), "one"),
    Scenario("none-sample", "A data set that returns None for what it cannot read.", NoneSample(), "one"),
    Scenario("ragged-window", "A window shorter than the others, in the middle of a batch.", RaggedWindow(), "one"),
    Scenario("empty-tensor", "A picture without annotations: an empty tensor is legal, and no missing value.",
             EmptyTensor(), "one", size="few-singles", settings={"batch_size": 1}),
    Scenario("nan", "A NaN where the schema allows it is data.", Nan(), "one"),
    Scenario("stop-iteration", "A next() on an exhausted iterator inside the data set leaks StopIteration.",
             RaiseStopIteration(), "one"),
    Scenario("index-error", "An index that is out of range looks like the end of a sequence.", RaiseIndexError(), "one"),
    Scenario("two-argument-error", "An exception whose constructor takes two arguments, like many of the libraries'.",
             RaiseTwoArgumentError(), "one"),
    Scenario("keyword-only-error", "An exception whose constructor takes keyword arguments only.", RaiseKeywordOnlyError(), "one"),
    Scenario("unpicklable-error", "An exception that holds a lock or a socket cannot leave its worker.",
             RaiseUnpicklableError(), "one"),
    Scenario("unpicklable-sample", "A sample that holds a lazily opened file cannot leave its worker.",
             UnpicklableSample(), "batch-start"),
    Scenario("hung-read", "A read from a stalled network file system never returns.", Hang(), "one",
             needs_workers=True, timed=True),
    Scenario("hung-holding-lock", "A C extension blocks with the interpreter lock held: no Python code of its process can run.",
             HangHoldingLock(), "one", needs_workers=True, timed=True),
    Scenario("slow-read", "A read takes a good part of the timeout: slow is not hung.", Slow(0.4), "one", timed=True),
    Scenario("slow-consumer", "A training step longer than the timeout: the loader is not to blame for it.",
             size="few", timed=True, settings={"step_s": 1.3}),
    Scenario("segfault", "A decoder crashes on one file.", Segfault(), "one", needs_workers=True),
    Scenario("abort", "A failed assertion in native code.", Abort(), "one", needs_workers=True),
    Scenario("killed", "The out-of-memory killer takes a worker.", Killed(), "one", needs_workers=True),
    Scenario("frozen", "A worker is stopped: a debugger, a cgroup freezer, a suspended container.", Frozen(), "one",
             needs_workers=True, timed=True),
    Scenario("exit", "A library calls exit(1) in a worker.", Exit(code=1), "one", needs_workers=True),
    Scenario("exit-zero", "A library ends a worker with exit code 0, which looks like success.", Exit(code=0), "one",
             needs_workers=True),
    Scenario("transient", "A read fails once, and is well when tried again.", Transient(failures=1), "one"),
    Scenario("three-epochs", "Training runs more than one epoch.", settings={"epochs": 3}),
    Scenario("early-break", "A sanity check, or an early stop, leaves the epoch; the next one must be whole.",
             settings={"epochs": 2, "break_after": 2}),
    Scenario("after-failure", "The epoch after one that ended in an error.", Transient(failures=1), "one",
             settings={"epochs": 2}),
)

_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def find(name: str, source: str = "map") -> Scenario:
    """The scenario of that name for a source.

    Raises:
        UserError: there is none; names the nearest.
    """
    if source in DISK_SOURCES:
        from . import disk_scenarios

        return disk_scenarios.find(name, source)
    if name not in _BY_NAME:
        raise UserError(unknown("scenario", name, list(_BY_NAME)))
    return _BY_NAME[name]


def select(names: Sequence[str], patterns: Sequence[str], what: str, without: Sequence[str] = ()) -> list[str]:
    """The names that match any of the globs, in their own order; all of them where there is no glob.

    Args:
        without: globs of names to leave out.

    Raises:
        UserError: a glob that matches nothing (names the nearest), or nothing is left.
    """
    for pattern in [*patterns, *without]:
        if not fnmatch.filter(names, pattern):
            raise UserError(unknown(what, pattern, names))
    chosen = [name for name in names if not patterns or _matches(name, patterns)]
    left = [name for name in chosen if not _matches(name, without)]
    if not left:
        raise UserError(f"no {what} is left: the globs to leave out ({', '.join(without)}) match all that were selected")
    return left


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def names(source: str | None = None) -> list[str]:
    """The names of the scenarios that are put to a source (None: to any), in the order in which they are run."""
    if source in MEMORY_SOURCES:
        return list(_BY_NAME)
    from . import disk_scenarios

    on_disk = [scenario.name for scenario in disk_scenarios.SCENARIOS if source is None or source in scenario.on]
    return on_disk if source is not None else list(dict.fromkeys([*_BY_NAME, *on_disk]))
