"""Budgets: what must and may happen to a loader that may skip so many damaged samples in a row."""

from __future__ import annotations

from badbatch.conformance.judging.expectation import expect
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults.raises import Raise
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.spec import Topology, TrialSpec
from hypothesis import given
from hypothesis import strategies as st

COUNTS = Contract(on_damage="skip", batches="short", tail="exact", skip_budget=True)


def _spec(damaged: set[int], limit: int, topology: Topology, **more: object) -> TrialSpec:
    return TrialSpec(
        loader="any:thing", directory="/", scenario="skips", source="map", topology=topology, samples=40, batch_size=4,
        plan=FaultPlan({sample: Raise() for sample in damaged}), contract=COUNTS, max_consecutive_skips=limit, **more,  # type: ignore[arg-type]
    )


def _longest(samples: list[int], damaged: set[int]) -> int:
    longest = row = 0
    for sample in samples:
        row = row + 1 if sample in damaged else 0
        longest = max(longest, row)
    return longest


@given(st.sets(st.integers(0, 39)), st.integers(0, 6), st.integers(1, 3), st.integers(1, 2), st.data())
def test_what_readers_can_meet(damaged: set[int], limit: int, workers: int, ranks: int, data: st.DataObject) -> None:
    """However the readers divide the samples: one must meet too many in a row, or none can, or nothing is required."""
    expected = expect(_spec(damaged, limit, Topology(workers, ranks)))
    owner = data.draw(st.lists(st.integers(0, workers * ranks - 1), min_size=40, max_size=40))
    parts = [[sample for sample in range(40) if owner[sample] == reader] for reader in range(workers * ranks)]
    too_many = any(_longest(part, damaged) > limit for part in parts)
    assert too_many or not expected.must_give_up
    assert expected.may_give_up or not too_many


@given(st.sets(st.integers(0, 39)), st.integers(0, 6))
def test_one_reader_meets_them_in_order(damaged: set[int], limit: int) -> None:
    """With one reader there is nothing between: it must give up, or it must not."""
    expected = expect(_spec(damaged, limit, Topology()))
    assert expected.must_give_up == expected.may_give_up == (_longest(list(range(40)), damaged) > limit)


@given(st.sets(st.integers(0, 39)), st.integers(0, 6))
def test_a_shuffle_may_put_any_of_them_in_a_row(damaged: set[int], limit: int) -> None:
    """The order is not known, so an error is never required, and wrong only if too few samples are damaged at all."""
    expected = expect(_spec(damaged, limit, Topology(), shuffle=True))
    assert not expected.must_give_up
    assert expected.may_give_up == (len(damaged) > limit)
