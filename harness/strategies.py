"""Hypothesis strategies for faults and plans; needs the extra ``badbatch[strategies]``.

``@given(plan=plans(samples=40, faults=faults(harmless_only=True)))`` gives a test plans that it can apply in its own
process.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from .errors import UserError
from .faults import Effect, Fault, registry
from .faults.parameters import Parameter, parameters
from .faults.raises import Raise
from .plan import FaultPlan

__all__ = ["faults", "plans", "read_faults"]

HARMFUL = frozenset({Effect.CRASH, Effect.STALL})
"""Effects that end or block the process in which a test itself runs."""

_WIDTH = 8  # entries in the field "x" of the samples of badbatch's sources

# For parameters whose annotation allows more than makes sense for the samples of badbatch's sources.
_FITTING: dict[tuple[str, str], SearchStrategy[Any]] = {
    # Each takes one message.
    ("raise", "error"): st.sampled_from(
        [f"builtins.{name}" for name in ("OSError", "ValueError", "KeyError", "EOFError", "MemoryError")]
    ),
    ("raise", "message"): st.sampled_from(["sample {sample} cannot be read", "cannot read {sample}", "unreadable"]),
    ("null-field", "field"): st.sampled_from(["x", "id"]),
    ("ragged-window", "field"): st.just("x"),
    ("ragged-window", "width"): st.integers(1, _WIDTH - 1) | st.integers(_WIDTH + 1, 2 * _WIDTH),
    ("nan", "field"): st.just("x"),
    ("nan", "position"): st.integers(0, _WIDTH - 1),
    ("empty-tensor", "field"): st.just("x"),
    # For a loader without a timeout, a hang that ends is only a slow read.
    ("hang", "release_after_s"): st.none(),
    ("slow", "seconds"): st.floats(0, 0.5),
    ("transient", "failures"): st.integers(1, 3),
}


def read_faults() -> dict[str, type[Fault]]:
    """The registered faults of a read in memory, by kind; the others damage a corpus on disk."""
    return {kind: cls for kind, cls in registry().items() if "strike" in vars(cls)}


def faults(effects: Collection[Effect] | Effect | None = None, harmless_only: bool = False) -> SearchStrategy[Fault]:
    """The registered faults of a read in memory, by kind; the others damage a corpus on disk."""
    wanted = set(Effect) if effects is None else {effects} if isinstance(effects, Effect) else set(effects)
    if harmless_only:
        wanted -= HARMFUL
    drawn = [(kind, cls) for kind, cls in read_faults().items() if cls.effect in wanted]
    if not drawn:
        names = ", ".join(sorted(effect.value for effect in wanted)) or "none at all"
        raise UserError(f"there is no fault to draw from: the requested effects are {names}")
    strategies = [_one_fault(kind, cls) for kind, cls in drawn]
    if Raise.effect in wanted:
        # Hypothesis shrinks towards the first of those that make the fewest choices.
        strategies.insert(0, st.just(Raise()))
    return st.one_of(strategies)


def plans(
    samples: int = 40, max_faults: int | None = 8, faults: SearchStrategy[Fault] | None = None
) -> SearchStrategy[FaultPlan]:
    """A plan for a source of ``samples`` samples; shrinks to the empty plan.

    Args:
        samples: ids are drawn from 0 … ``samples - 1``.
        max_faults: the maximum number of damaged samples; None: no maximum.
        faults: what to draw the faults from; None: :func:`faults`.
    """
    if samples < 0 or (max_faults is not None and max_faults < 0):
        raise UserError(f"a plan needs counts of 0 or more, not samples={samples} and max_faults={max_faults}")
    if samples == 0:
        return st.builds(FaultPlan)
    most = samples if max_faults is None else min(samples, max_faults)
    chosen = _any_fault() if faults is None else faults
    return st.dictionaries(st.integers(0, samples - 1), chosen, max_size=most).map(FaultPlan)


def _any_fault() -> SearchStrategy[Fault]:
    return faults()


def _one_fault(kind: str, cls: type[Fault]) -> SearchStrategy[Fault]:
    values = {
        name: _FITTING[kind, name] if (kind, name) in _FITTING else _values(parameter)
        for name, parameter in parameters(cls).items()
    }
    return st.builds(cls, **values)


def _values(parameter: Parameter) -> SearchStrategy[Any]:
    within = parameter.within
    least, most = (within.least, within.most) if within else (None, None)
    below = within is not None and within.below
    values: SearchStrategy[Any]
    if parameter.choices:
        values = st.sampled_from(parameter.choices)
    elif parameter.base is bool:
        values = st.booleans()
    elif parameter.base is int:
        values = st.integers(None if least is None else int(least), None if most is None else int(most) - below)
    elif parameter.base is float:
        values = st.floats(least, most, allow_nan=False, allow_infinity=False, exclude_max=below)
    else:
        values = st.text(max_size=20)
    return st.none() | values if parameter.optional else values
