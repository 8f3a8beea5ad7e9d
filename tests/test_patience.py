"""A deadline that is too short convicts nobody: the verdict says what it was too short for."""

from __future__ import annotations

from typing import Any

import pytest
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.patience import too_short
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.spec import CLOSE_WITHIN_S, Topology, TrialSpec
from history_dsl import history_of

_HUNG: dict[str, Any] = {"timeout_s": 1.0, "workers": 1, "plan": {5: Hang()}, "deadline_s": 12.0}
_DEAD: dict[str, Any] = {"workers": 2, "plan": {5: Segfault()}, "deadline_s": 12.0}


@pytest.mark.parametrize(
    ("story", "trial", "words"),
    [
        ("0-3 4-7 8-11 end closing +5s deadline", {"deadline_s": 6.0}, "closing may take 10 s"),
        ("0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out 8-11 end closing +8s deadline", _HUNG, "closing may take 10 s"),
        ("0-3 w0:fault5 ask +1.5s deadline", _HUNG, "a timeout may take 2 s"),
        ("0-3 w0:fault5 ask +8s deadline", _DEAD, "the news of a worker's death may take 10 s"),
        ("0-3 ask +2s deadline", {"deadline_s": 2.0}, "a call of next() may take 5 s"),
    ],
)
def test_a_deadline_that_is_too_short_is_inconclusive(story: str, trial: dict[str, Any], words: str) -> None:
    """No check fails, and the reason names what was waited for and a deadline that is long enough."""
    history = history_of(story, **trial)
    found = judge(history)
    assert Mark.FAIL not in {verdict.mark for verdict in found}
    reasons = {verdict.reason for verdict in found if verdict.mark is Mark.INCONCLUSIVE}
    assert reasons == {too_short(history)}
    assert words in too_short(history)
    assert "use --deadline " in too_short(history)


@pytest.mark.parametrize(
    ("check", "story", "trial"),
    [
        ("no-leftovers", "0-3 4-7 8-11 end closing +11s deadline", {"deadline_s": 12.0}),
        ("correct-timeout", "0-3 w0:fault5 ask +3s deadline", _HUNG),
        ("crash-surfaces", "0-3 w0:fault5 ask +11s deadline", _DEAD),
        ("finite-epoch", "0-3 ask +6s deadline", {"deadline_s": 7.0}),
        ("finite-epoch", "0-3 ask stalled", {}),
    ],
)
def test_what_was_waited_for_long_enough_fails(check: str, story: str, trial: dict[str, Any]) -> None:
    """Where the promised time is over, or nothing moves any more, a cut trial convicts."""
    assert check in {verdict.check for verdict in judge(history_of(story, **trial)) if verdict.mark is Mark.FAIL}


@pytest.mark.parametrize("deadline", [6.0, 12.0, 30.0, 120.0])
def test_a_trial_is_not_cut_while_closing_may_still_end(deadline: float) -> None:
    """A quiet trial is not cut for longer than closing may take; the deadline ends it in any case."""
    spec = TrialSpec("a:b", "/", "clean", "map", Topology(), FaultPlan(), deadline_s=deadline)
    assert spec.quiet_s > CLOSE_WITHIN_S
