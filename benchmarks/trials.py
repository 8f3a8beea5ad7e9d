"""What a trial costs compared with the same trial in a fresh interpreter, and how much time parallel trials save."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options
from badbatch.harness.contract.choices import Isolation
from badbatch.harness.plan import FaultPlan
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.spec import Topology, TrialSpec

from .measure import Figure, seconds

LOADER = "torch.utils.data:DataLoader"
_TIMES = {"fork": 40, "spawn": 5}


def figures() -> Iterator[Figure]:
    """Forked against fresh; side by side against one after another."""
    forked, fresh = _one_trial("fork"), _one_trial("spawn")
    yield Figure(
        "a trial here, against one in a fresh interpreter",
        fresh / forked,
        "times faster",
        30,
        True,
        f"median of {_TIMES['fork']}: {forked * 1e3:.0f} ms; median of {_TIMES['spawn']}: {fresh:.2f} s",
    )
    wall, trials = _whole_suite()
    yield Figure(
        "the suite's wall time, against the sum of its trials' times",
        wall / sum(trials),
        "of the sum",
        0.5,
        False,
        f"{len(trials)} trials of {sum(trials):.0f} s in all, done after {wall:.0f} s (repetitions of failing trials only in the latter)",
    )


def _one_trial(isolation: Isolation) -> float:
    """The median time of a clean trial without workers, in seconds, from start to judged record."""
    spec = TrialSpec(LOADER, "/", "clean", "map", Topology(0, 1), FaultPlan())
    with tempfile.TemporaryDirectory() as folder, Supervisor(LOADER, "/", isolation) as supervisor:
        times = _TIMES[supervisor.isolation]
        runs = [Path(folder) / str(number) for number in range(times + 1)]
        supervisor.run(spec, runs[0])  # the first run reads files that are then in memory
        return statistics.median(seconds(lambda run=run: supervisor.run(spec, run)) for run in runs[1:])  # type: ignore[misc]


def _whole_suite() -> tuple[float, list[float]]:
    """Wall time of the whole suite over torch's loader, and the time of each of its trials."""
    with tempfile.TemporaryDirectory() as folder, Suite(LOADER, Options(known=("torch",)), folder) as suite:
        suite.start()
        suite.prepare()
        trials: list[float] = []
        wall = seconds(lambda: suite.run(lambda result: trials.append(result.seconds)))
    return wall, [trial for trial in trials if trial]
