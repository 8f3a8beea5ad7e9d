"""The public strategies draw every fault that strikes a read, with sensible parameters, and shrink to nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Literal

import pytest
from badbatch.harness.errors import UserError
from badbatch.harness.faults import Effect, Fault, registry
from badbatch.harness.faults.parameters import Within, check_parameters, parameters
from badbatch.harness.faults.raises import Raise
from badbatch.harness.plan import FaultPlan
from badbatch.harness.strategies import HARMFUL, _one_fault, faults, plans, read_faults
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.timeout(60)
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy


@pytest.mark.parametrize("kind", sorted(registry()))
def test_every_fault_is_drawn_or_left_out_for_a_reason(kind: str) -> None:
    """Each registered fault that strikes a read is drawn; those that do not strike one damage files on disk."""
    cls = registry()[kind]
    if "strike" not in vars(cls):
        assert kind not in read_faults()
        return
    drawn = find(
        faults(effects=cls.effect),
        lambda fault: type(fault) is cls,
        settings=settings(max_examples=2000, database=None),
    )
    assert drawn.kind == kind


@pytest.mark.parametrize("effect", sorted({cls.effect for cls in read_faults().values()}, key=attrgetter("value")))
@settings(unhurried, max_examples=20)
@given(data=st.data())
def test_effects_are_respected(effect: Effect, data: st.DataObject) -> None:
    """Only faults with the given effects are drawn, for one effect or several."""
    assert data.draw(faults(effects=effect)).effect is effect
    assert data.draw(faults(effects=[effect, Effect.ERROR])).effect in (effect, Effect.ERROR)


@unhurried
@given(fault=faults(harmless_only=True))
def test_harmless_means_the_test_survives(fault: Fault) -> None:
    """No crash and no stall is drawn where only harmless faults may be."""
    assert fault.effect not in HARMFUL


def test_nothing_to_draw_from() -> None:
    """A choice that leaves no fault is refused in words."""
    with pytest.raises(UserError, match="no fault to draw from"):
        faults(effects=Effect.CRASH, harmless_only=True)
    with pytest.raises(UserError, match="none at all"):
        faults(effects=[])


@unhurried
@given(data=st.data(), samples=st.integers(0, 50), most=st.none() | st.integers(0, 10))
def test_plans_keep_their_bounds(data: st.DataObject, samples: int, most: int | None) -> None:
    """Ids are within the source, and no more samples are damaged than allowed."""
    plan = data.draw(plans(samples=samples, max_faults=most, faults=st.just(Raise())))
    assert all(0 <= sample < samples for sample in plan)
    assert len(plan) <= (samples if most is None else most)


def test_plans_shrink_to_nothing() -> None:
    """The simplest plan is the empty one, then the one with a plain error at sample 0."""
    afresh = settings(database=None)
    assert find(plans(), lambda _: True, settings=afresh) == FaultPlan()
    assert find(plans(), lambda plan: len(plan) > 0, settings=afresh) == FaultPlan({0: Raise()})


def test_plans_can_fill_a_source() -> None:
    """Without a bound on the number of faults every sample may be damaged."""
    full = find(plans(samples=3, max_faults=None, faults=st.just(Raise())), lambda plan: len(plan) == 3)
    assert list(full) == [0, 1, 2]


@pytest.mark.parametrize("bad", [{"samples": -1}, {"max_faults": -1}])
def test_plans_refuse_negative_counts(bad: dict[str, Any]) -> None:
    """A negative count is refused in words."""
    with pytest.raises(UserError, match="counts of 0 or more"):
        plans(**bad)


@dataclass(frozen=True)
class Sampler(Fault):
    """A fault with a parameter of each form that annotations may have."""

    flag: bool = False
    count: int = 0
    bounded: Annotated[int, Within(-3, 3)] = 0
    ratio: Annotated[float, Within(0, 1)] = 0.5
    bare: float = 0.0
    word: str = ""
    choice: Literal["a", "b"] = "a"
    optional: Annotated[int, Within(0, 9)] | None = None

    def __post_init__(self) -> None:
        check_parameters(self)


@unhurried
@given(fault=_one_fault("sampler", Sampler))
def test_values_follow_the_annotations(fault: Sampler) -> None:
    """Values are drawn from what the annotations say, and what is drawn passes the check that reads the same ones."""
    assert isinstance(fault.flag, bool)
    assert -3 <= fault.bounded <= 3
    assert 0 <= fault.ratio <= 1
    assert fault.choice in ("a", "b")
    assert fault.optional is None or 0 <= fault.optional <= 9


def test_unknown_annotations_are_refused() -> None:
    """A parameter of a form that neither check nor strategy knows is reported by name, not passed over."""

    @dataclass(frozen=True)
    class Odd(Fault):
        numbers: tuple[int, ...] = ()

    with pytest.raises(TypeError, match=r"Odd\.numbers"):
        parameters(Odd)


def test_the_package_does_without_hypothesis() -> None:
    """Faults and plans import neither Hypothesis nor torch nor NumPy: the strategies are an extra."""
    program = (
        "import sys, badbatch.harness.faults, badbatch.harness.plan;"
        "print(sorted({'hypothesis', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
