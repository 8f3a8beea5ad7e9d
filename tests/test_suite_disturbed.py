"""What ends a trial from outside costs a repetition: no trial is lost, none is waited for in vain, no loader is blamed."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trials
from badbatch.conformance.engine.claims import Claims
from badbatch.conformance.engine.policy import not_clean
from badbatch.conformance.engine.pool import Pool
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.engine.tasks import Done, Task
from badbatch.conformance.engine.trial_state import TrialState
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.report.model import Report
from badbatch.harness.errors import HarnessError
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.slow import Slow
from badbatch.harness.plan import FaultPlan
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.spec import TrialSpec
from history_dsl import history_of
from trials import ROOT

LOADER = "tests.rogues.disturbed:disturbed"
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each file that a test puts here ends one trial."""
    monkeypatch.setenv("DISTURBED", str(tmp_path))
    return tmp_path


@pytest.fixture
def suite(folder: Path) -> Iterator[Suite]:
    """A suite of two scenarios in one topology, with its probes done."""
    with Suite(LOADER, Options(workers=(1,), ranks=(1,), scenarios=("clean", "one-bad")), ROOT) as prepared:
        prepared.start()
        prepared.prepare()
        yield prepared


def wrong(report: Report) -> list[str]:
    """All that is neither kept nor out of question."""
    return [
        f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}"
        for v in report.verdicts
        if v.mark not in (Mark.PASS, Mark.NA)
    ]


def test_a_trial_is_not_lost_with_the_zygote_that_should_begin_it(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the zygote dies just before a trial is begun, the trial is begun in the next zygote."""
    begin, begun = Supervisor.start, []

    def start(supervisor: Supervisor, *arguments: Any, **how: Any) -> int:
        begun.append(arguments)
        if len(begun) in (1, 3):  # a clean trial; and one that was taken from the middle of the queue
            assert supervisor._process is not None
            os.kill(supervisor._process.pid, signal.SIGKILL)
            supervisor._process.wait()
        return begin(supervisor, *arguments, **how)

    monkeypatch.setattr(Supervisor, "start", start)
    report = suite.run()
    assert wrong(report) == []
    assert {trial.spec.scenario for trial in report.trials} == {"clean", "one-bad"}


@pytest.mark.parametrize("who", ["supervisor", "rank"])
def test_a_clean_trial_that_was_ended_from_outside_is_run_again(who: str, suite: Suite, folder: Path) -> None:
    """One whose trial supervisor was killed, and one that the machine killed, say nothing of the loader."""
    (folder / who).touch()
    assert wrong(suite.run()) == []
    assert not list(folder.iterdir())


def test_trials_that_are_always_ended_from_outside_say_so(suite: Suite, folder: Path) -> None:
    """After three times in vain they are inconclusive, and the true reason is given, also for the trials of the cell."""
    for number in range(3):
        (folder / f"supervisor-{number}").touch()
    reasons = {(v.scenario, v.mark, v.reason) for v in suite.run().verdicts if v.mark is not Mark.NA}
    assert reasons == {
        ("clean", Mark.INCONCLUSIVE, "the trial was lost"),
        ("one-bad", Mark.INCONCLUSIVE, "the clean scenario has no result in this topology: the trial was lost"),
    }


def test_a_probe_that_was_ended_from_outside_is_run_again(folder: Path) -> None:
    """The contract is inferred from a probe that ran to its end."""
    (folder / "supervisor").touch()
    with Suite(LOADER, Options(workers=(1,), ranks=(1,), scenarios=("clean",)), ROOT) as suite:
        suite.start()
        suite.prepare()
        assert wrong(suite.run()) == []


def test_a_fault_that_cannot_be_raised_here_says_why(tmp_path: Path) -> None:
    """A stored trial whose error class is of a library that is missing is run and judged, and the reason is given."""
    asked = trials.question("fixtures.loaders.honest:map_raise", "one-bad")
    foreign = dataclasses.replace(asked, plan=FaultPlan({5: Raise("missing_library.Error")}))
    judged = trials.put([TrialSpec.from_json(foreign.to_json())], tmp_path)
    reasons = {v.reason for found in judged.values() for v in found.verdicts if v.mark is Mark.INCONCLUSIVE}
    assert reasons == {
        "the fault had no effect: reading the sample raised 'missing_library.Error' cannot be imported: "
        "No module named 'missing_library'"
    }


@pytest.mark.parametrize("story", ["0-3 ask interrupted", "0-3 ask died:-9"])
def test_a_clean_trial_that_was_ended_from_outside_does_not_blame_the_loader(story: str) -> None:
    """The reason is that there is no result, not that the loader never ends."""
    assert not_clean(history_of(story)).startswith("the clean scenario has no result in this topology: the ")


@pytest.mark.usefixtures("folder")
def test_a_claim_whose_process_died_is_run_the_requested_number_of_times(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process claimed a trial of three repetitions and died: all three are run here, and the suite ends."""
    shared = tmp_path_factory.mktemp("shared")
    monkeypatch.setattr(Claims, "overdue", lambda self, spec, runs: True)
    options = Options(workers=(1,), ranks=(1,), scenarios=("one-bad",), repeat=3)
    with Suite(LOADER, options, ROOT, shared=shared) as suite:
        suite.start()
        suite.prepare()
        [spec] = suite.specs()
        assert Claims(shared).claim(spec)
        result = suite.result(spec)
    assert len(result.verdicts) > 3
    assert {verdict.mark for verdict in result.verdicts} <= {Mark.PASS, Mark.NA}


def test_an_error_while_one_trial_is_judged_loses_no_other(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised, the trial is inconclusive with it as the reason, and every other trial comes to its result."""
    take = suite._outcomes._take

    def fails_for_one(state: TrialState, done: Done) -> None:
        if state.spec.scenario == "one-bad":
            raise ZeroDivisionError("ours")
        take(state, done)

    monkeypatch.setattr(suite._outcomes, "_take", fails_for_one)
    clean, struck = suite.specs()
    with pytest.raises(ZeroDivisionError, match="ours"):
        suite.result(struck)
    assert suite.result(clean).ended == "ended"
    reasons = {verdict.reason for verdict in suite.result(struck).verdicts if verdict.mark is Mark.INCONCLUSIVE}
    assert reasons == {"not run to its end: judging it was ended by ZeroDivisionError: ours"}


def test_a_trial_that_nothing_can_bring_is_not_waited_for(suite: Suite) -> None:
    """A trial that was left out has no result, and asking for it says so."""
    clean, struck = suite.specs()
    suite.only({(clean.id, "no-lost-batches")})
    assert suite.result(clean).ended == "ended"
    with pytest.raises(HarnessError, match="no running trial can produce it"):
        suite.result(struck)


def test_a_trial_whose_folder_was_removed_is_run_again(suite: Suite) -> None:
    """A cleaner of temporary folders takes the record of a running trial; the trial is lost, and run once more."""
    spec = dataclasses.replace(suite.specs()[0], plan=FaultPlan({5: Slow(1.0)}))
    with Pool(LOADER, ROOT) as pool:
        pool.start()
        pool.submit(Task(lambda: spec))
        ended = list(pool.advance(0.0))
        [folder] = pool.supervisor.folders().values()
        shutil.rmtree(folder)
        while pool.busy:
            ended += pool.advance()
        [done] = ended
    assert (done.task.disturbed, done.history.ended.cut, done.history.complete) == (1, None, True)
