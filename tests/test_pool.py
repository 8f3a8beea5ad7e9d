"""The pool without a suite, as a search or an audit drives it: real trials, in any order, many at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.pool import Pool
from badbatch.conformance.engine.tasks import Task
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.slow import Slow
from badbatch.harness.faults.stop_iteration import RaiseStopIteration
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from trials import ROOT

LOADER = "torch.utils.data:DataLoader"
RAISES = Contract(on_damage="raise", after_error="continue", tail="exact")
pytestmark = pytest.mark.timeout(120)


def asked(plan: FaultPlan, workers: int = 0, **settings: float) -> TrialSpec:
    """A trial of torch's loader over 40 samples."""
    spec = TrialSpec(LOADER, str(ROOT), "search", "map", Topology(workers), plan, RAISES, samples=40, batch_size=4)
    return dataclasses.replace(spec, **settings)  # type: ignore[arg-type]


def broken(history: History) -> set[str]:
    """The promises that a trial shows broken, without their consequences."""
    return {verdict.check for verdict in judge(history) if verdict.mark is Mark.FAIL and not verdict.cause}


def smallest(pool: Pool, plan: FaultPlan) -> tuple[FaultPlan, int]:
    """The smallest plan that breaks what ``plan`` breaks, by taking faults away, and how many trials that took."""
    [history] = pool.histories([asked(plan)])
    wanted, trials = broken(history), 1
    while True:
        smaller = list(plan.shrinks())
        histories = pool.histories(asked(one) for one in smaller)
        trials += len(smaller)
        failing = [one for one, history in zip(smaller, histories, strict=True) if wanted <= broken(history)]
        if not failing:
            return plan, trials
        plan = min(failing, key=len)


def test_a_search_drives_the_pool() -> None:
    """Of six faults one makes torch's loader lose batches: it is found, in one pool, by histories and checks alone."""
    faults = {sample: Raise() for sample in (2, 11, 17, 30, 38)}
    with Pool(LOADER, ROOT) as pool:
        found, trials = smallest(pool, FaultPlan({**faults, 21: RaiseStopIteration()}))
        assert not pool.busy
        assert not [path for path in pool.scratch.iterdir() if path.name[:5].isdigit()]
    assert found == FaultPlan({21: RaiseStopIteration()})
    assert trials > 3


def test_histories_come_as_they_end_and_leaving_early_ends_the_rest() -> None:
    """A trial that hangs is not waited for, once the iterator is left; the pool can be used again."""
    hung, quick = asked(FaultPlan({5: Hang()}), workers=1, deadline_s=100.0), asked(FaultPlan())
    with Pool(LOADER, ROOT, jobs=2) as pool:
        running = pool.run([hung, quick])
        spec, history = next(running)
        assert spec is quick and history.complete
        assert pool.busy
        running.close()  # type: ignore[attr-defined]
        assert not pool.busy
        [again] = pool.histories([quick])
    assert again.complete
    assert not Path(pool.scratch).exists()


def test_a_task_that_runs_alone_has_nothing_beside_it() -> None:
    """Lower orders are started first; the task that is alone starts after all others have ended, though it was submitted first."""
    events: list[str] = []

    def task(name: str, *, order: float = 0.0, alone: bool = False) -> Task:
        spec = asked(FaultPlan({5: Slow(0.2)}))

        def begin() -> TrialSpec:
            events.append(f"begin {name}")
            return spec

        return Task(begin, order=order, alone=alone)

    names: dict[Task, str] = {}
    with Pool(LOADER, ROOT, jobs=2) as pool:
        pool.start()
        for name, order, alone in (("alone", -9, True), ("late", 2, False), ("early", 0, False), ("middle", 1, False)):
            names[one := task(name, order=order, alone=alone)] = name
            pool.submit(one)
        dropped = task("dropped", order=-5)
        pool.submit(dropped)
        pool.drop(dropped)
        while pool.busy:
            for done in pool.advance():
                events.append(f"end {names[done.task]}")
    assert [event for event in events if event.startswith("begin")] == ["begin early", "begin middle", "begin late", "begin alone"]
    assert events[-2:] == ["begin alone", "end alone"]


def test_a_task_that_nobody_needs_any_more_takes_no_place() -> None:
    """Its ``begin`` returns None when there is a place for it; the next one is started."""
    with Pool(LOADER, ROOT, jobs=1) as pool:
        pool.start()
        pool.submit(Task(lambda: None))
        pool.submit(Task(lambda: asked(FaultPlan())))
        ended = []
        while pool.busy:
            ended += pool.advance()
    [done] = ended
    assert done.history.complete
