"""The ledger: for any history the sums match, and no sample has two fates; in stories each fate is the right one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from badbatch.conformance import checks, diagnoses
from badbatch.conformance.diagnoses.case import Case
from badbatch.conformance.diagnoses.comparison import Comparison
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.relating import record, relate
from badbatch.conformance.judging.accounting import account
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.ledger import Fate, Ledger, Stop
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults import Fault
from badbatch.harness.faults.empty_tensor import EmptyTensor
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.none_sample import NoneSample
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.slow import Slow
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.unpicklable_sample import UnpicklableSample
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.event_log import RECORD, Cap, Content, Kind, Remains, Where
from badbatch.harness.trial.history import Ended, History
from badbatch.harness.trial.phases import Batches, Phase, Save, left_early, logical_epochs, plain, rebuilt
from badbatch.harness.trial.spec import Topology, TrialSpec
from history_dsl import MARKS, RAISES, SKIPS, STOPS, SUBSTITUTES, history_of, ledger_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_FAULTS: list[Fault] = [
    Raise(), NoneSample(), Hang(), Segfault(), UnpicklableSample(), Transient(failures=1), EmptyTensor(), Slow(0.4)
]
_FLAGS = {
    Kind.ARRIVED: [Content.WHOLE, Content.WRONG, Content.UNCHECKED, Content.MARKED],
    Kind.RAISED: list(Where),
    Kind.CAPPED: list(Cap),
    Kind.LEFTOVER: list(Remains),
    Kind.KEPT: list(Remains),
    Kind.REPORTED: [0, 1],
    Kind.READ_DONE: [0, 1],
    Kind.LENGTH: [0, 1],
}
_PROGRAMS = (
    plain(), plain(2), plain(3), left_early(2), rebuilt(), rebuilt(until=Batches(1)),
    (Phase(until=Batches(2), then=Save()), Phase(load=0, epochs=2)),
    (Phase(until=Batches(2), then=Save()), Phase(topology=Topology(1, 3), load=0)),
    (Phase(topology=Topology(1, 3), until=Batches(2), then=Save()), Phase(load=0)),
    (Phase(until=Batches(2), then=Save()), Phase(same_process=True), Phase(load=0)),
)
_BY_READERS = (Kind.READ, Kind.READ_DONE, Kind.FAULT, Kind.SKIPPED)
_WITHOUT_EPOCH = (*_BY_READERS, Kind.BUILDING, Kind.BUILT, Kind.LENGTH, Kind.CLOSING, Kind.CLOSED, Kind.LEFTOVER, Kind.KEPT, Kind.FINISHED)
_ABSENT = (
    Fate.RAISED, Fate.COLLATERAL, Fate.SKIPPED, Fate.SUBSTITUTED, Fate.DROPPED, Fate.UNDELIVERED, Fate.IN_DOUBT, Fate.LOST
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any history: events of every kind, in any order, whether or not a loader could cause them."""
    samples = draw(st.integers(0, 9))
    plan = draw(st.dictionaries(st.integers(0, 8), st.sampled_from(_FAULTS), max_size=3))
    spec = TrialSpec(
        loader="any:thing",
        directory="/",
        scenario="one-bad",
        source=draw(st.sampled_from(["map", "stream", "sharded_stream", "imagefolder"])),
        topology=Topology(draw(st.integers(0, 2)), draw(st.integers(1, 3))),
        plan=FaultPlan({sample: fault for sample, fault in plan.items() if sample < samples}),
        contract=Contract(
            on_damage=draw(st.sampled_from(["raise", "skip", "substitute", "mark"])),
            after_error=draw(st.sampled_from(["continue", "stop"])),
            batches=draw(st.sampled_from(["short", "full"])),
            tail=draw(st.sampled_from(["exact", "pad", "drop"])),
        ),
        samples=samples,
        batch_size=draw(st.integers(1, 4)),
        shuffle=draw(st.booleans()),
        drop_last=draw(st.booleans()),
        timeout_s=draw(st.sampled_from([0.0, 1.0])),
        phases=draw(st.sampled_from(_PROGRAMS)),
    )
    return draw(_recorded(spec))


@st.composite
def _recorded(draw: st.DrawFn, spec: TrialSpec) -> History:
    records = [_record(draw, spec, now) for now in range(draw(st.integers(0, 40)))]
    events = np.array([record for rank in range(spec.most_ranks) for record in records if record[-2] == rank], RECORD)
    ended = Ended(
        cut=draw(st.sampled_from([None, None, "stalled", "out of time", "interrupted"])),
        seconds=20.0,
        ranks=tuple(draw(st.sampled_from([0, 0, 0, -11, -9, 1, None])) for _ in range(spec.most_ranks)),
    )
    return History(spec, events, {(100, 1): {"type": "builtins.OSError", "bases": ["builtins.OSError"], "message": "x"}}, ended)


def _record(draw: st.DrawFn, spec: TrialSpec, now: int) -> tuple[int, ...]:
    kind = draw(st.sampled_from(list(Kind)))
    phase, epoch = draw(st.sampled_from([segment for segments in logical_epochs(spec.phases) for segment in segments]))
    rank = draw(st.integers(0, spec.in_phase(phase).topology.ranks - 1))
    if kind is Kind.FAULT and spec.plan:
        sample = draw(st.sampled_from(list(spec.plan)))
    elif kind is Kind.FAULT:
        kind, sample = Kind.READ, 0
    else:
        sample = draw(st.integers(-1, spec.samples + 1))
    worker = draw(st.integers(-1, max(-1, spec.topology.workers - 1))) if kind in _BY_READERS else -1
    epoch = -1 if kind in _WITHOUT_EPOCH else epoch
    flags = draw(st.sampled_from(_FLAGS.get(kind, [0])))
    pid = 100 + 10 * rank + worker + 1
    return now * 10**8, sample, draw(st.integers(0, 3)), pid, worker, phase, epoch, kind, flags, rank, int(worker >= 0)


_any_history = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_any_history
@given(histories())
def test_the_sums_close(history: History) -> None:
    """Each sample has one fate, and every arrival, call, batch, error and skip is in the account of its epoch."""
    for epoch in account(history, expect(history.spec)).epochs:
        mine = history.events[history.in_epoch(history.events, epoch.number)]
        assert epoch.closes
        assert sum(epoch.counts().values()) == history.spec.samples == len(epoch.fate)
        arrived = int(np.sum(mine["kind"] == Kind.ARRIVED))
        assert int(epoch.arrivals.sum()) + len(epoch.fabricated) + epoch.unnamed == arrived
        for counted, kind in ((epoch.calls, Kind.ASK), (epoch.batches, Kind.GOT)):
            assert sum(counted) == int(np.sum(mine["kind"] == kind))
            assert len(counted) == max(history.spec.in_phase(phase).topology.ranks for phase, _ in history.logical_epochs[epoch.number])
        assert int(epoch.reported.sum()) + epoch.reported_strangers <= max(
            epoch.reported_total or 0, len(history.of(Kind.REPORTED))
        )


@_any_history
@given(histories())
def test_a_fate_agrees_with_what_arrived(history: History) -> None:
    """What did not arrive is not delivered, what arrived is not lost, and more than once is more than once."""
    for epoch in account(history, expect(history.spec)).epochs:
        came = epoch.arrivals
        assert np.all(came[epoch.having(Fate.DELIVERED)] == 1)
        assert np.all(came[epoch.having(Fate.PADDED, Fate.DUPLICATED)] > 1)
        assert np.all(came[epoch.having(*_ABSENT)] == 0)
        marked = epoch.having(Fate.MARKED)
        assert np.all((epoch.marked[marked] > 0) | (came[marked] == 0))
        assert np.count_nonzero(came[marked] == 0) <= epoch.unnamed


@_any_history
@given(histories())
def test_no_fate_is_given_beyond_its_budget(history: History) -> None:
    """What excuses a missing or an extra sample excuses no more than the expectation allows, and only where it may."""
    expected = expect(history.spec)
    for epoch in account(history, expected).epochs:
        counts = epoch.counts()
        assert counts["collateral"] <= expected.collateral_budget(sum(epoch.errors))
        assert counts["dropped"] <= expected.drop_budget
        assert counts["padded"] <= expected.pad_budget + expected.substitute_budget
        assert counts["raised"] <= sum(epoch.errors) * history.spec.batch_size
        assert not counts["in_doubt"] or Stop.CUT in epoch.stops
        assert not counts["undelivered"] or not epoch.whole or (not expected.goes_on and any(epoch.errors))
        assert not counts["lost"] or epoch.whole


@_any_history
@given(histories())
def test_no_check_and_no_diagnosis_fails_on_any_history(history: History) -> None:
    """Whatever a history contains, every check judges it and every diagnosis looks at it without raising."""
    for verdict in judge(history):
        assert "the check itself raised" not in verdict.reason
        assert verdict.mark is not Mark.KNOWN
    expected = expect(history.spec)
    ledger: Ledger = account(history, expected)
    for entry in diagnoses.registry().values():
        for check in entry.explains:
            if check not in checks.relations():
                text = entry.rule(Case(check, history, ledger, expected))
                assert text is None or text.strip()


@settings(_any_history, max_examples=50)
@given(histories(), st.data())
def test_no_relation_and_no_diagnosis_fails_on_any_histories(history: History, data: st.DataObject) -> None:
    """Whatever the histories of several trials of one job contain, every relation judges them and every diagnosis looks at them."""
    relation = data.draw(st.sampled_from(list(checks.relations().values())))
    trials = {role.name: record(data.draw(_recorded(_other(data, history.spec)))) for role in relation.roles}
    trials[relation.subject] = record(history)
    assert "the relation itself raised" not in relate(relation, trials).reason
    for entry in diagnoses.registry().values():
        if relation.id in entry.explains:
            text = entry.rule(Comparison(trials))
            assert text is None or text.strip()


def _other(data: st.DataObject, spec: TrialSpec) -> TrialSpec:
    topology = Topology(data.draw(st.integers(0, 2)), spec.topology.ranks)
    return dataclasses.replace(spec, topology=topology, phases=data.draw(st.sampled_from(_PROGRAMS)))


@pytest.mark.parametrize(
    ("story", "trial", "fates"),
    [
        ("0-3 4-7 8-11 end", {}, {"delivered": 12}),
        ("0-3 fault5 raise 8-11 end", {}, {"delivered": 8, "raised": 1, "collateral": 3}),
        ("0-3 fault5 4,6,7 skip5 8-11 end", {"contract": SKIPS}, {"delivered": 11, "skipped": 1}),
        ("0-3 fault5 4,6,7 8-11 end skipped1", {"contract": SKIPS}, {"delivered": 11, "skipped": 1}),
        ("0-3 fault5 4,6,7 8-11 end", {"contract": SKIPS}, {"delivered": 11, "lost": 1}),
        ("0-3 fault5 4,6,6,7 8-11 end", {"contract": SUBSTITUTES}, {"delivered": 10, "padded": 1, "substituted": 1}),
        ("0-3 fault5 4,5?,6,7 8-11 end", {"contract": MARKS}, {"delivered": 11, "marked": 1}),
        ("0-3 fault5 4,?,6,7 8-11 end", {"contract": MARKS}, {"delivered": 11, "marked": 1}),
        ("0-3 4-7 4-7 8-11 end", {}, {"delivered": 8, "duplicated": 4}),
        ("0,2,4 end r1:1,3,0 r1:end", {"samples": 5, "batch": 3, "ranks": 2}, {"delivered": 4, "padded": 1}),
        ("0-3 4-7 end", {"samples": 10, "drop_last": True}, {"delivered": 8, "dropped": 2}),
        ("0-3 break", {"break_after": 1}, {"delivered": 4, "undelivered": 8}),
        ("0-3 fault5 raise raise raise capped", {"contract": STOPS}, {"delivered": 4, "raised": 1, "undelivered": 7}),
        ("0-3 fault5 raise end", {"contract": STOPS}, {"delivered": 4, "raised": 1, "collateral": 3, "undelivered": 4}),
        ("read0-3 0-3 ask read4 fault5 died:-11", {"plan": {5: Segfault()}}, {"delivered": 4, "undelivered": 7, "in_doubt": 1}),
        ("0-3 8-11 end", {}, {"delivered": 8, "lost": 4}),
    ],
)
def test_each_fate_is_recognised(story: str, trial: dict[str, Any], fates: dict[str, int]) -> None:
    """A history from a story has the fates that the story describes, and no others."""
    history = history_of(story, **{"contract": RAISES, **trial})
    assert {fate: number for fate, number in ledger_of(history).first.counts().items() if number} == fates


def test_the_collateral_is_what_was_read_with_the_damaged_sample() -> None:
    """Of the missing good samples, those that the same process read next to the damaged one are its collateral."""
    story = "w0:read0,2,4,6 w1:read1,3 w1:fault5 w1:read7 0,2,4,6 raise 8-11 end"
    epoch = ledger_of(history_of(story, workers=2)).first
    assert epoch.having(Fate.COLLATERAL).tolist() == [1, 3, 7]


def test_skips_that_count_on_over_epochs_are_counted_once_an_epoch() -> None:
    """If loader.skipped continues counting, the earlier epochs' skips are subtracted from the later ones'."""
    story = "0-3 fault5 4,6,7 8-11 end skipped:5 epoch 0-3 fault5 4,6,7 8-11 end skipped:5,5"
    epochs = ledger_of(history_of(story, contract=SKIPS)).epochs
    assert [(epoch.reported_total, epoch.reported[5]) for epoch in epochs] == [(1, 1), (1, 1)]
