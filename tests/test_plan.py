"""The laws of fault plans."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from badbatch.harness.errors import UserError
from badbatch.harness.faults import Fault
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.raises import Raise
from badbatch.harness.plan import FaultPlan
from badbatch.harness.strategies import faults, plans
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.timeout(60)
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy


@unhurried
@given(plan=plans())
def test_json_round_trip(plan: FaultPlan) -> None:
    """A plan comes back equal from its JSON, as a mapping and as a text."""
    text = json.dumps(plan.to_json())
    assert FaultPlan.from_json(plan.to_json()) == plan
    assert FaultPlan.from_json(text) == plan
    assert hash(FaultPlan.from_json(text)) == hash(plan)
    assert json.dumps(FaultPlan.from_json(text).to_json()) == text


@unhurried
@given(plan=plans())
def test_travels_between_processes(plan: FaultPlan) -> None:
    """A plan survives pickling and copying, as on its way into a spawned worker."""
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert copy.deepcopy(plan) == plan


@unhurried
@given(plan=plans(), order=st.randoms(use_true_random=False))
def test_order_does_not_matter(plan: FaultPlan, order: Any) -> None:
    """Plans are equal, with equal hash and text, if they contain the same faults, in whatever order they were given."""
    entries = list(plan.items())
    order.shuffle(entries)
    again = FaultPlan(dict(entries))
    assert again == plan
    assert hash(again) == hash(plan)
    assert repr(again) == repr(plan)
    assert list(again) == sorted(plan)


@unhurried
@given(one=plans(samples=3), other=plans(samples=3))
def test_equality_is_by_content(one: FaultPlan, other: FaultPlan) -> None:
    """Two plans are equal exactly when each sample has the same fault in both."""
    assert (one == other) == (dict(one) == dict(other))


@unhurried
@given(plan=plans())
def test_is_an_immutable_mapping(plan: FaultPlan) -> None:
    """A plan keeps its own copy of what it was given and offers no way to change it."""
    given_faults = dict(plan)
    mine = FaultPlan(given_faults)
    given_faults[1_000] = Raise()
    assert mine == plan
    assert 1_000 not in mine
    with pytest.raises(TypeError):
        mine[0] = Raise()  # type: ignore[index]


drawings = {
    "seed": st.integers(0, 2**64),
    "samples": st.integers(0, 200),
    "choices": st.lists(faults(), min_size=1, max_size=4),
    "share": st.floats(0, 1),
}


@unhurried
@given(**drawings)
def test_draw_is_deterministic_and_exact(seed: int, samples: int, choices: list[Fault], share: float) -> None:
    """The same seed draws the same plan, of exactly ``round(share * samples)`` of the faults offered."""
    plan = FaultPlan.draw(seed, samples, choices, share)
    assert FaultPlan.draw(seed, samples, choices, share) == plan
    assert len(plan) == round(share * samples)
    assert all(0 <= sample < samples for sample in plan)
    assert set(plan.values()) <= set(choices)


def test_draw_is_the_same_for_ever() -> None:
    """A seed that was printed once draws the same plan in later versions."""
    plan = FaultPlan.draw(7, 40, [Raise(), Hang()], 0.1)
    assert {sample: fault.kind for sample, fault in plan.items()} == {3: "raise", 9: "raise", 20: "hang", 25: "raise"}


def test_seeds_differ() -> None:
    """Another seed draws other samples."""
    drawn = {tuple(FaultPlan.draw(seed, 100, [Raise()], 0.1)) for seed in range(20)}
    assert len(drawn) == 20


@unhurried
@given(plan=plans(), healed=st.lists(st.integers(0, 45)))
def test_without_heals_just_those(plan: FaultPlan, healed: list[int]) -> None:
    """Healing takes away the named samples' faults and leaves the others as they were."""
    expected = {sample: fault for sample, fault in plan.items() if sample not in healed}
    assert dict(plan.without(healed)) == expected


@unhurried
@given(plan=plans())
def test_shrinks_are_strictly_smaller(plan: FaultPlan) -> None:
    """Each shrink is a proper subset of the plan, none occurs twice, and the empty plan comes first."""
    shrinks = list(plan.shrinks())
    for smaller in shrinks:
        assert smaller.items() < plan.items()
    assert len(set(shrinks)) == len(shrinks)
    assert shrinks[:1] == ([FaultPlan()] if plan else [])


@unhurried
@given(plan=plans())
def test_shrinks_reach_every_single_heal(plan: FaultPlan) -> None:
    """Among the shrinks is, for each fault, the plan without it, so that a minimum can always be reached."""
    shrinks = set(plan.shrinks())
    assert {plan.without([sample]) for sample in plan} <= shrinks


@unhurried
@given(plan=plans(), guilty=st.sets(st.integers(0, 39), max_size=3))
def test_greedy_shrinking_finds_the_guilty(plan: FaultPlan, guilty: set[int]) -> None:
    """Taking the first shrink that still fails, over and over, ends with exactly the faults that matter."""
    culprits = guilty & set(plan)

    def fails(candidate: FaultPlan) -> bool:
        return culprits <= set(candidate)

    current = plan
    for _ in plan:  # each step heals a fault at least
        current = next(filter(fails, current.shrinks()), current)
    assert set(current) == culprits


def test_plans_hold_many_kinds() -> None:
    """The strategy mixes kinds within one plan, so the laws above were tried on mixed plans."""
    mixed = find(plans(), lambda plan: len({fault.kind for fault in plan.values()}) >= 3)
    assert len(mixed) >= 3


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: FaultPlan({-1: Raise()}), "-1 is no such id"),
        (lambda: FaultPlan({True: Raise()}), "True is no such id"),
        (lambda: FaultPlan({1.0: Raise()}), "1.0 is no such id"),  # type: ignore[dict-item]
        (lambda: FaultPlan({"5": Raise()}), "'5' is no such id"),  # type: ignore[dict-item]
        (lambda: FaultPlan({5: "hang"}), "'hang', which is no fault"),  # type: ignore[dict-item]
        (lambda: FaultPlan({5: Hang}), "which is no fault"),  # type: ignore[dict-item]
        (lambda: FaultPlan.draw(0, 40, [Raise()], 1.2), "between 0 and 1, not 1.2"),
        (lambda: FaultPlan.draw(0, 40, [Raise()], -0.1), "between 0 and 1"),
        (lambda: FaultPlan.draw(0, 40, [Raise()], float("nan")), "between 0 and 1"),
        (lambda: FaultPlan.draw(0, 40, [], 0.5), "at least one fault"),
        (lambda: FaultPlan.from_json("{"), "not JSON"),
        (lambda: FaultPlan.from_json("[]"), "not a list"),
        (lambda: FaultPlan.from_json('{"five": {"fault": "hang"}}'), "'five' is no such id"),
        (lambda: FaultPlan.from_json('{"-5": {"fault": "hang"}}'), "'-5' is no such id"),
        (lambda: FaultPlan.from_json('{"5": "hang"}'), "which is no fault"),
        (lambda: FaultPlan.from_json('{"5": {}}'), "unknown fault None"),
        (lambda: FaultPlan.from_json('{"5": {"fault": "hnag"}}'), "did you mean 'hang'?"),
        (lambda: FaultPlan.from_json('{"5": {"fault": ["hang"]}}'), "unknown fault ['hang']"),
        (lambda: FaultPlan.from_json('{"5": {"fault": "hang", "for": 3}}'), "'for'"),
        (lambda: FaultPlan.from_json('{"5": {"fault": "exit", "code": -1}}'), "code must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(attempt: Callable[[], object], words: str) -> None:
    """A value that is not a plan is refused on input, in one line that says what is wrong."""
    with pytest.raises(UserError) as refused:
        attempt()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
