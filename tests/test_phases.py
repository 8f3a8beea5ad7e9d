"""A trial is a program of phases: which are allowed, what they add up to, and what real processes do of them."""

from __future__ import annotations

import dataclasses
import json
import signal
from pathlib import Path
from typing import Any

import history_dsl
import numpy as np
import pytest
from badbatch.conformance.judging.accounting import account, readings
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.ledger import Ledger, Stop
from badbatch.harness.errors import UserError
from badbatch.harness.faults.hang import Hang
from badbatch.harness.plan import FaultPlan
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import HEADER, RECORD, Actor, Kind, Recorder, Where, read_log
from badbatch.harness.trial.history import History
from badbatch.harness.trial.phases import (
    Abandon,
    Batches,
    Close,
    End,
    Event,
    Phase,
    Program,
    Save,
    Signal,
    continues,
    left_early,
    lives,
    logical_epochs,
    must_be_runnable,
    plain,
    rebuilt,
)
from badbatch.harness.trial.spec import Topology, TrialSpec
from history_dsl import broken, history_of
from hypothesis import given
from hypothesis import strategies as st
from staging import ON_STAGE, ROGUES, delivered, errors, spec

pytestmark = ON_STAGE
RESUMED = (Phase(until=Batches(3), then=Save()), Phase(load=0, epochs=2))


def phases(first: bool) -> st.SearchStrategy[Phase]:
    """Any phase, allowed or not."""
    return st.builds(
        Phase,
        topology=st.sampled_from([None, None, Topology(2), Topology(0, 2)]),
        first_epoch=st.integers(0, 2),
        epochs=st.integers(1, 3),
        until=st.one_of(st.just(End()), st.builds(Batches, st.integers(0, 4)), st.builds(Event, st.sampled_from(["got", "read"]))),
        then=st.sampled_from([Close(), Abandon(), Save(), Signal(), Signal(9, "worker")]),
        load=st.none() if first else st.one_of(st.none(), st.integers(0, 2)),
        same_process=st.just(False) if first else st.booleans(),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program that can be run."""
    program: Program = ()
    for number in range(draw(st.integers(1, 4))):
        longer = (*program, draw(phases(first=number == 0)))
        try:
            must_be_runnable(longer, Topology(1))
        except UserError:
            continue
        program = longer
    return program or plain()


@given(programs())
def test_a_program_comes_back_from_json(program: Program) -> None:
    """Whatever its phases are, as a part of the trial's file."""
    trial = TrialSpec("a:b", "/", "clean", "map", Topology(1), FaultPlan(), phases=program)
    assert TrialSpec.from_json(json.loads(json.dumps(trial.to_json()))) == trial


@given(programs())
def test_each_segment_is_in_a_logical_epoch(program: Program) -> None:
    """Each epoch of each phase ends exactly one logical epoch or is continued by another phase; each phase has a life."""
    found = logical_epochs(program)
    segments = {(number, epoch) for number, phase in enumerate(program) for epoch in phase.numbers}
    assert {segment for logical in found for segment in logical} == segments
    assert [number for life in lives(program) for number in life] == list(range(len(program)))
    for logical in found:
        assert len({epoch for _, epoch in logical}) == 1
        assert all(continues(program, number) for number, _ in logical[1:])
        assert not continues(program, logical[0][0]) or logical[0][1] != program[logical[0][0]].first_epoch
    sources = {phase.load if phase.load is not None else number - 1 for number, phase in enumerate(program) if continues(program, number)}
    assert len(found) == len(segments) - len(sources)  # the first phase that continues a state makes no epoch of its own


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ((), "at least one phase"),
        ((Phase(same_process=True),), "phase 0 of the trial is the first"),
        ((Phase(), Phase(load=0)), "loads the state of phase 0, which saves none"),
        ((Phase(load=0),), "loads the state of phase 0"),
        ((Phase(epochs=0),), "has no epoch"),
        ((Phase(until=Batches(-1)),), "negative number"),
        ((Phase(until=Event("got")),), "only a phase that ends with a signal can"),
        ((Phase(until=Event("gott"), then=Signal()),), "waits for an event 'gott'"),
        ((Phase(then=Signal()), Phase(same_process=True)), "ends with a signal"),
        ((Phase(), Phase(topology=Topology(3), same_process=True)), "another topology"),
    ],
)
def test_a_program_that_cannot_run_is_refused(program: Program, why: str) -> None:
    """In one line that names the phase."""
    with pytest.raises(UserError, match=why):
        TrialSpec("a:b", "/", "clean", "map", Topology(1), FaultPlan(), phases=program)


@pytest.mark.parametrize(
    ("old", "program"),
    [
        ({"epochs": 3, "break_after": None}, plain(3)),
        ({"epochs": 2, "break_after": 2, "rounds": 1}, left_early(2)),
        ({"epochs": 1, "break_after": None, "rounds": 2}, rebuilt()),
        ({"epochs": 1, "break_after": 2, "rounds": 2}, rebuilt(until=Batches(2))),
    ],
)
def test_a_trial_of_format_1_is_read(old: dict[str, Any], program: Program) -> None:
    """Its epochs, its break and its rounds become phases."""
    data = TrialSpec("a:b", "/", "clean", "map", Topology(1), FaultPlan()).to_json()
    del data["phases"], data["sample_every_s"]
    assert program == TrialSpec.from_json({**data, **old, "badbatch_trial": 1}).phases


def test_a_trial_of_a_later_format_is_refused() -> None:
    """In one line that says which formats are read."""
    data = TrialSpec("a:b", "/", "clean", "map", Topology(1), FaultPlan()).to_json()
    with pytest.raises(UserError, match="format 1 or 2"):
        TrialSpec.from_json({**data, "badbatch_trial": 3})


def test_a_log_of_format_1_is_read(tmp_path: Path) -> None:
    """It has no header, and records without a phase and an actor."""
    old = np.dtype([
        ("time", "<i8"), ("sample", "<i8"), ("aux", "<i4"), ("pid", "<i4"), ("worker", "<i2"), ("epoch", "<i2"),
        ("kind", "u1"), ("flags", "u1"), ("rank", "<u2"),
    ])  # fmt: skip
    records = np.array([(1, 5, 2, 77, -1, 1, Kind.GOT, 0, 3), (2, 6, 0, 78, 1, -1, Kind.READ, 0, 3)], old)
    (tmp_path / "events-3.bin").write_bytes(records.tobytes() + b"torn")
    found = read_log(tmp_path / "events-3.bin")
    fields = ("sample", "epoch", "worker", "rank", "phase")
    assert [(5, 1, -1, 3, 0), (6, -1, 1, 3, 0)] == [tuple(int(event[name]) for name in fields) for event in found]


def test_a_log_of_another_format_is_refused(tmp_path: Path) -> None:
    """In one line that names the file and the formats that are read."""
    (tmp_path / "events-0.bin").write_bytes(HEADER.pack(b"badbatch", 9, 48, 0, 0, 0))
    with pytest.raises(UserError, match=r"events-0.bin is an event log of format 9; .* reads formats 1 and 2"):
        read_log(tmp_path / "events-0.bin")


def test_a_log_begins_with_its_header(tmp_path: Path) -> None:
    """Once, however many recorders open it; records name their phase and their actor."""
    one, other = Recorder(tmp_path, 2), Recorder(tmp_path, 2, phase=1, actor=Actor.SUPERVISOR)
    one(Kind.READ, 4)
    other(Kind.MEMORY, 1000, pid=55)
    one.close()
    other.close()
    data = (tmp_path / "events-2.bin").read_bytes()
    magic, version, width, rank, *_ = HEADER.unpack(data[: HEADER.size])
    assert (b"badbatch", 2, RECORD.itemsize, 2, HEADER.size + 2 * RECORD.itemsize) == (magic, version, width, rank, len(data))
    assert [(0, Actor.RANK), (1, Actor.SUPERVISOR)] == [(int(e["phase"]), int(e["actor"])) for e in read_log(tmp_path / "events-2.bin")]
    assert not list(tmp_path.glob("events-2.bin.*"))


def ledger(history: History) -> Ledger:
    """The account of a trial."""
    return account(history, expect(history.spec))


def arrived_in(history: History, phase: int, epoch: int, rank: int) -> int:
    """How many samples arrived in one segment."""
    return int(np.count_nonzero(history.segment(phase, epoch, rank)["kind"] == Kind.ARRIVED))


def test_the_epoch_of_a_resume_is_one() -> None:
    """What arrived before and after a resume is one epoch, and the checks of today judge it."""
    whole = history_of("read0-3 0-3 saved resumed read4-11 4-7 8-11 end epoch read0-11 0-3 4-7 8-11 end", phases=history_dsl.RESUMED)
    assert [(Stop.END,), (Stop.END,)] == [epoch.stops for epoch in ledger(whole).epochs]
    assert [[1] * 12] * 2 == [epoch.arrivals.tolist() for epoch in ledger(whole).epochs]
    assert [12, 12] == [len(readings(whole, number, Kind.READ)) for number in range(2)]
    for check in ("no-duplicates", "no-lost-batches", "finite-epoch", "fresh-epoch"):
        assert not broken(check, whole)



@pytest.mark.parametrize(
    ("story", "check"),
    [
        ("0-3 saved resumed 0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", "no-duplicates"),
        ("0-3 saved resumed 8-11 end epoch 0-3 4-7 8-11 end", "no-lost-batches"),
        ("0-3 saved resumed 4-7 8-11 end epoch 4-7 8-11 end", "resume-exact"),
    ],
)
def test_a_resume_that_repeats_or_loses_is_found(story: str, check: str) -> None:
    """A batch again, a batch less, and a later epoch that begins where the state was taken."""
    assert broken(check, history_of(story, phases=history_dsl.RESUMED))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, History]:
    """One run of each program, several at a time."""
    interrupted = Phase(until=Batches(3), then=Signal())
    specs = {
        "resumed": spec("remembers", phases=RESUMED, shuffle=False),
        "forgets": spec("forgets", phases=RESUMED),
        "refuses": spec("remembers", phases=(RESUMED[0], dataclasses.replace(RESUMED[1], topology=Topology(0, 2)))),
        "asked only": spec("remembers", phases=(RESUMED[0], Phase(same_process=True))),
        "no state": spec("well", phases=RESUMED),
        "new process": spec("rogue_loaders:DataLoader", phases=(Phase(until=Batches(3)), Phase(topology=Topology(0, 2)))),
        "interrupted": spec("well", phases=(interrupted, Phase())),
        "at the end": spec("well", phases=(Phase(then=Signal(signal.SIGTERM)),)),
        "while a read hangs": spec("well", {7: Hang()}, phases=(Phase(until=Event("fault", sample=7), then=Signal(signal.SIGKILL)),)),
        "sampled": spec("naps", sample_every_s=0.02),
    }
    found: dict[str, History] = {}
    folder = tmp_path_factory.mktemp("phases")
    with Supervisor("rogue_loaders:well", ROGUES) as supervisor:
        running = {supervisor.start(trial, folder / name.replace(" ", "-")): name for name, trial in specs.items()}
        while running:
            for number, where in supervisor.finished(1.0):
                found[running.pop(number)] = History.load(where)
    return found


@pytest.mark.timeout(240)
def test_a_loader_is_resumed_in_a_new_process(runs: dict[str, History]) -> None:
    """It is built again, gets the state, and the epoch that spans both phases has each sample once; so has the next one."""
    history = runs["resumed"]
    assert history.complete, history.output
    assert [[1] * 40] * 2 == [epoch.arrivals.tolist() for epoch in ledger(history).epochs]
    assert 2 == len(set(history.of(Kind.BUILDING)["pid"].tolist()))
    assert [0, 1] == history.of(Kind.BUILDING)["phase"].tolist()
    assert (1, 1) == (len(history.of(Kind.SAVED)), len(history.of(Kind.LOADED)))
    assert [12, 28, 40] == [arrived_in(history, *segment) for segment in ((0, 0, 0), (1, 0, 0), (1, 1, 0))]


@pytest.mark.timeout(240)
def test_a_loader_that_forgets_is_seen(runs: dict[str, History]) -> None:
    """One that ignores its state delivers again what it had delivered before."""
    assert 12 == int(ledger(runs["forgets"]).first.extra.sum())


@pytest.mark.timeout(240)
def test_a_state_that_is_refused_is_an_error_of_loading(runs: dict[str, History]) -> None:
    """The refusal is recorded, on each rank of the phase that loads, and nothing of it is delivered."""
    refused = errors(runs["refuses"], Where.LOAD)
    assert ["builtins.ValueError: another number of ranks"] * 2 == refused
    assert 12 == len(delivered(runs["refuses"]))


@pytest.mark.timeout(240)
def test_asking_for_the_state_changes_nothing(runs: dict[str, History]) -> None:
    """The consumer continues with the same iterator in the same process."""
    history = runs["asked only"]
    assert [1] * 40 == ledger(history).first.arrivals.tolist()
    assert (1, 1) == (len(history.of(Kind.BUILDING)), len(history.of(Kind.EPOCH)))


@pytest.mark.timeout(240)
def test_a_loader_without_a_state_is_seen(runs: dict[str, History]) -> None:
    """What it lacks is an error of saving, and the second phase says that there is nothing to load."""
    assert "state_dict" in errors(runs["no state"], Where.SAVE)[0]
    assert ["badbatch.harness.errors.HarnessError: no state was saved in phase 0"] == errors(runs["no state"], Where.LOAD)


@pytest.mark.timeout(240)
def test_a_phase_may_have_another_topology(runs: dict[str, History]) -> None:
    """One rank, then two in new processes, each in its own group; each has its own record."""
    history = runs["new process"]
    assert history.complete, history.output
    first, second = ledger(history).epochs
    assert ((Stop.BROKE,), 12) == (first.stops, int(first.arrivals.sum()))
    assert ((Stop.END, Stop.END), [1] * 40) == (second.stops, second.arrivals.tolist())


@pytest.mark.timeout(240)
def test_a_signal_ends_the_process_as_it_ends_a_script(runs: dict[str, History]) -> None:
    """Ctrl-C in a training step after three batches; the next phase begins in a new process."""
    history = runs["interrupted"]
    sent = history.watched[history.watched["kind"] == Kind.SIGNALLED]
    assert [(signal.SIGINT, 1, Actor.SUPERVISOR)] == [(int(e["flags"]), int(e["aux"]), int(e["actor"])) for e in sent]
    assert sent["pid"][0] == history.of(Kind.BUILDING)["pid"][0] != history.of(Kind.BUILDING)["pid"][1]
    assert 12 == arrived_in(history, 0, 0, 0)
    assert history.complete
    assert [1] * 40 == ledger(history).epochs[1].arrivals.tolist()
    assert "KeyboardInterrupt" in history.output


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "signum", "arrived"), [("at the end", signal.SIGTERM, 40), ("while a read hangs", signal.SIGKILL, 4)])
def test_a_signal_is_sent_at_its_event(name: str, signum: int, arrived: int, runs: dict[str, History]) -> None:
    """When the epoch is over, or while a sample is read; the exit code is that of the signal."""
    history = runs[name]
    assert (None, (-signum,)) == (history.ended.cut, history.ended.ranks)
    assert arrived == len(delivered(history))


@pytest.mark.timeout(240)
def test_memory_threads_and_descriptors_are_sampled(runs: dict[str, History]) -> None:
    """By the trial supervisor, of each process of the trial, while it runs; no check of the consumer's events sees them."""
    watched = runs["sampled"].watched
    memory = watched[watched["kind"] == Kind.MEMORY]
    descriptors = watched[watched["kind"] == Kind.DESCRIPTORS]
    assert set(memory["pid"].tolist()) == set(runs["sampled"].of(Kind.BUILDING)["pid"].tolist())
    assert (memory["sample"] > 0).all() and (memory["aux"] >= 1).all()
    assert (descriptors["sample"] >= 3).all() and len(descriptors)
    assert not len(runs["sampled"].of(Kind.MEMORY))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples": "40"}, "damaged: samples: Expected `int`, got `str`"),
        ({"contract": {"tail": "torn"}}, "damaged: contract: Invalid enum value 'torn' at `tail`"),
        ({"plan": {"5": {"fault": "hnag"}}}, "damaged: plan: unknown fault 'hnag'; did you mean 'hang'?"),
        ({"topology": {"workers": None}}, "damaged: topology: Expected `int`, got `null` at `workers`"),
        ({"samplse": 3}, "damaged: unknown field 'samplse'; did you mean 'samples'?"),
        ({"phases": [{"until": {"point": "batches", "n": "3"}, "then": {"point": "close"}}]}, "damaged: n: Expected `int`"),
        ({"phases": [{"until": {"point": "never"}, "then": {"point": "close"}}]}, "damaged: until: unknown point 'never'"),
        ({"phases": [{"until": {"point": "end"}}]}, "incomplete: it has no 'then'"),
        ({"phases": [3]}, "damaged: "),
        ({"phases": 3}, "damaged: "),
    ],
)
def test_a_damaged_trial_is_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    """The line names the field, and what is wrong with it."""
    data = json.loads(json.dumps(TrialSpec("a:b", "/", "clean", "map", Topology(1), FaultPlan()).to_json()))
    with pytest.raises(UserError) as refused:
        TrialSpec.from_json({**data, **change})
    assert said in str(refused.value) and "\n" not in str(refused.value)
