"""What the policy decides: from the states of trials and from histories alone, without a process."""

from __future__ import annotations

from typing import Any

import pytest
from badbatch.conformance import scenarios
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.policy import Next, Policy, replaces_record
from badbatch.conformance.engine.trial_state import TrialState
from badbatch.harness.faults.hang import Hang
from badbatch.harness.trial.history import History
from history_dsl import history_of

WHOLE, LOSES = "0-3 4-7 8-11 end", "0-3 8-11 end"
DAMAGED = "0-3 fault5 raise:OSError 8-11 end"


def state_of(history: History, **known: Any) -> TrialState:
    """The state of the trial that a history is from."""
    return TrialState(history.spec, scenarios.find(history.spec.scenario, history.spec.source), **known)


def after(policy: Policy, state: TrialState, story: str, *, failed: bool, alone: bool = False, **settings: Any) -> Next:
    """What follows from one more run of a trial."""
    history = history_of(story, **settings)
    return policy.after(state, history, judge(history), failed=failed, alone=alone)


def test_trials_wait_for_the_clean_trial_of_their_cell() -> None:
    """Damaged trials and trials with a timeout wait; the clean trial itself and trials where nothing can go wrong do not."""
    policy = Policy()
    damaged = state_of(history_of(DAMAGED))
    timed = state_of(history_of(WHOLE, scenario="slow-read", timeout_s=1.0))
    elsewhere = state_of(history_of(DAMAGED, workers=2))
    whole = state_of(history_of(WHOLE, scenario="shuffled"))
    clean = history_of(WHOLE)
    assert [policy.blocked(state) for state in (damaged, timed, elsewhere, whole, state_of(clean))] == [
        True, True, True, False, False
    ]  # fmt: skip
    assert policy.seen(damaged_history := history_of(DAMAGED)) == []
    assert policy.seen(clean) == [damaged, timed]
    assert policy.seen(clean) == []
    assert not policy.blocked(damaged)
    assert policy.spoiled(damaged_history.spec) == ""
    assert policy.blocked(elsewhere)


def test_a_clean_trial_that_fails_spoils_its_cell_only() -> None:
    """The first clean history decides; a repetition changes nothing."""
    policy = Policy()
    policy.seen(history_of(LOSES))
    policy.seen(history_of(WHOLE))
    assert policy.spoiled(history_of(DAMAGED).spec) == "the loader loses samples already in the clean scenario"
    assert policy.spoiled(history_of(DAMAGED, workers=2).spec) == ""


def test_a_clean_trial_without_a_result_lets_the_others_run() -> None:
    """They are run, and inconclusive with its reason; a trial that gates nothing releases nothing."""
    policy = Policy()
    damaged = state_of(history_of(DAMAGED))
    assert policy.blocked(damaged)
    assert policy.unseen(damaged.spec, "a test ended it") == []
    assert policy.unseen(history_of(WHOLE).spec, "a test ended it") == [damaged]
    assert policy.spoiled(damaged.spec) == "the clean scenario has no result in this topology: a test ended it"


@pytest.mark.parametrize(
    ("confirm", "wanted", "failed", "expected"),
    [
        (2, 1, [False], [Next.RESULT]),
        (2, 1, [True, True], [Next.AGAIN, Next.RESULT]),
        (2, 1, [True, False], [Next.AGAIN, Next.RESULT]),
        (1, 1, [True], [Next.RESULT]),
        (2, 3, [False, True, False], [Next.MORE, Next.MORE, Next.RESULT]),
    ],
)
def test_a_failure_is_confirmed(confirm: int, wanted: int, failed: list[bool], expected: list[Next]) -> None:
    """A failing trial runs ``confirm`` times, unless it is repeated more often anyway."""
    policy, state = Policy(confirm), state_of(history_of(WHOLE), wanted=wanted)
    found = [after(policy, state, LOSES if one else WHOLE, failed=one) for one in failed]
    assert found == expected
    assert len(state.runs) == len(failed)


def test_a_failure_by_the_clock_counts_only_where_nothing_runs_beside_it() -> None:
    """The run is forgotten, and run again alone. A pass counts, and so does a failure of a trial in which something hangs."""
    policy, timed = Policy(), {"scenario": "slow-read", "timeout_s": 1.0}
    hurried = state_of(history_of(WHOLE, **timed))
    assert after(policy, hurried, LOSES, failed=True, **timed) is Next.ALONE
    assert hurried.runs == []
    assert after(policy, hurried, LOSES, failed=True, alone=True, **timed) is Next.AGAIN
    assert after(policy, state_of(history_of(WHOLE, **timed)), WHOLE, failed=False, **timed) is Next.RESULT
    hung = {"scenario": "hung-read", "timeout_s": 1.0, "plan": {5: Hang()}, "workers": 2}
    assert after(policy, state_of(history_of(LOSES, **hung)), LOSES, failed=True, **hung) is Next.AGAIN


def test_clean_trials_come_first_and_those_that_wait_before_those_that_compute() -> None:
    """But a failure is confirmed before anything else is started."""
    policy = Policy()
    clean, one_bad = state_of(history_of(WHOLE)), state_of(history_of(DAMAGED))
    hung = state_of(history_of(LOSES, scenario="hung-read", plan={5: Hang()}, workers=2))
    assert sorted([one_bad, hung, clean], key=policy.order) == [clean, hung, one_bad]
    assert policy.order(one_bad, first=True) < policy.order(clean)


def test_a_timeout_is_lengthened_by_what_the_clean_trial_measured() -> None:
    """In its cell only; what hangs for longer than the timeout does so in the same ratio; no timeout stays none."""
    policy = Policy()
    policy.seen(history_of("ask +1.1s 0-3 4-7 8-11 end", deadline_s=30.0))
    timed = history_of(WHOLE, scenario="slow-read", timeout_s=1.0, step_s=0.5, deadline_s=30.0).spec
    longer = policy.with_timeout(timed)
    assert (longer.timeout_s, longer.step_s) == (2.5, 1.25)
    assert 1.1 <= policy.begins_s(timed) < 1.2
    other = history_of(WHOLE, workers=2, scenario="slow-read", timeout_s=1.0).spec
    assert (policy.with_timeout(other), policy.begins_s(other)) == (other, 0.0)
    untimed = history_of(DAMAGED).spec
    assert policy.with_timeout(untimed) == untimed


def test_a_pass_does_not_replace_the_record_of_a_failure() -> None:
    """The last failing run is kept; without a failure, the last run."""
    policy, state = Policy(), state_of(history_of(WHOLE), wanted=3)
    kept = []
    for failed in (False, True, False):
        after(policy, state, LOSES if failed else WHOLE, failed=failed)
        kept.append(replaces_record(state, failed=failed))
    assert kept == [True, True, False]
