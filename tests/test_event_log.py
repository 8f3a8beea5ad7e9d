"""The event log: what is written is read, by whom and in whatever circumstances it was written."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.event_log import RECORD, Kind, Recorder
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from hypothesis import given, settings
from hypothesis import strategies as st

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
BYTE = st.integers(0, 255)
SINGLE = st.tuples(st.sampled_from(Kind), INT64, INT32, BYTE, INT16)
ROW = st.tuples(st.sampled_from(Kind), st.lists(INT64, max_size=20), INT32, BYTE, INT16)
ANY_TEXT = st.text(st.characters(), max_size=60)  # with line ends, lone surrogates, NUL
FIELDS = ("kind", "sample", "aux", "flags", "epoch")


def described(folder: Path, ranks: int = 1) -> Path:
    """A trial's folder that contains no record yet."""
    folder.mkdir(exist_ok=True)
    TrialSpec("mod:attr", ".", "clean", "map", Topology(ranks=ranks), FaultPlan()).write(folder / "trial.json")
    return folder


@contextlib.contextmanager
def trial_folder(ranks: int = 1) -> Iterator[Path]:
    """The same for a Hypothesis example, which must not share one."""
    with tempfile.TemporaryDirectory() as name:
        yield described(Path(name), ranks)


def in_child(work: Callable[[], Any], *, killed: bool = False) -> int:
    """Run ``work`` in a forked process and wait for it; its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if killed else 0)
    return pid


def history_of(history: History) -> list[tuple[int, ...]]:
    """The numbers of each event, without those that the recorder adds."""
    return [tuple(int(event[name]) for name in FIELDS) for event in history.events]


@given(st.lists(SINGLE, max_size=30), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_any_record_comes_back_as_it_was_written(records: list[tuple[Kind, int, int, int, int]], rank: int) -> None:
    """Whatever fits a record's fields is read back in order, with this process, its rank and a rising clock."""
    with trial_folder(ranks=4) as folder:
        recorder = Recorder(folder, rank)
        for kind, sample, aux, flags, epoch in records:
            recorder(kind, sample, aux, flags, epoch)
        recorder.close()
        history = History.load(folder)
        assert [(int(k), s, a, f, e) for k, s, a, f, e in records] == history_of(history)
        assert set(history.events["pid"]) <= {os.getpid()}
        assert set(history.events["rank"]) <= {rank}
        assert set(history.events["worker"]) <= {-1}
        assert bool(np.all(np.diff(history.events["time"]) >= 0))


@given(st.lists(st.one_of(SINGLE, ROW), max_size=12))
@settings(max_examples=60, deadline=None)
def test_many_is_the_same_as_one_after_another(calls: list[Any]) -> None:
    """Records written in a row differ from single ones in nothing but the time, also mixed with them."""
    with trial_folder() as one, trial_folder() as many:
        single, rows = Recorder(one), Recorder(many)
        for kind, samples, aux, flags, epoch in calls:
            if isinstance(samples, int):
                rows(kind, samples, aux, flags, epoch)
                single(kind, samples, aux, flags, epoch)
                continue
            rows.many(kind, np.array(samples, np.int64), aux, flags, epoch)
            for sample in samples:
                single(kind, sample, aux, flags, epoch)
        single.close()
        rows.close()
        expected, found = History.load(one).events, History.load(many).events
        for name in RECORD.names or ():
            if name != "time":
                np.testing.assert_array_equal(expected[name], found[name])


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=12))
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back_as_it_was_written(texts: list[tuple[str, str]]) -> None:
    """A text of any characters is found again by the number that was given for it."""
    with trial_folder() as folder:
        recorder = Recorder(folder)
        numbers = [recorder.text(type=kind, message=message) for kind, message in texts]
        for number in numbers:
            recorder(Kind.RAISED, aux=number)
        recorder.close()
        history = History.load(folder)
        assert texts == [(history.text(e, "type"), history.text(e)) for e in history.of(Kind.RAISED)]


def test_processes_that_write_at_once_never_interleave(tmp_path: Path) -> None:
    """Records, rows and texts of five processes come out whole, and in order for each process."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.BUILDING)
    gate, opener = os.pipe()
    pids = []
    for writer in range(5):
        pid = os.fork()
        if pid == 0:
            try:
                os.close(opener)
                os.read(gate, 1)  # until the parent closes the other end: all begin at once
                for step in range(400):
                    recorder(Kind.READ, step, aux=writer)
                    recorder.many(Kind.ARRIVED, np.full(50, step), writer, writer, 0)
                    if step % 10 == 0:
                        recorder(
                            Kind.RAISED, step, aux=recorder.text(type="t", message=f"{writer}-{step}" + "x" * 9000)
                        )
            finally:
                os._exit(0)
        pids.append(pid)
    os.close(gate)
    os.close(opener)
    for pid in pids:
        os.waitpid(pid, 0)
    recorder.close()
    history = History.load(tmp_path)
    assert 1 + 5 * (400 * 51 + 40) == len(history.events)
    for writer, pid in enumerate(pids):
        mine = history.events[history.events["pid"] == pid]
        assert list(range(400)) == mine[mine["kind"] == Kind.READ]["sample"].tolist()
        assert np.repeat(np.arange(400), 50).tolist() == mine[mine["kind"] == Kind.ARRIVED]["sample"].tolist()
        assert {writer} == set(mine[mine["kind"] != Kind.RAISED]["aux"])
        for event in mine[mine["kind"] == Kind.RAISED]:
            assert f"{writer}-{event['sample']}" + "x" * 9000 == history.text(event)


def test_what_was_written_before_a_kill_survives_it(tmp_path: Path) -> None:
    """A process that is killed right after a record and a text leaves both, without having closed anything."""
    recorder = Recorder(described(tmp_path))

    def work() -> None:
        recorder.many(Kind.ARRIVED, np.arange(1000), 0, 1, 0)
        recorder(Kind.RAISED, 7, aux=recorder.error(ValueError("the last word")))

    pid = in_child(work, killed=True)
    history = History.load(tmp_path)
    assert [*range(1000), 7] == history.events["sample"].tolist()
    assert {pid} == set(history.events["pid"])
    assert "the last word" == history.text(history.events[-1])


@pytest.mark.parametrize("torn", [1, 16, RECORD.itemsize - 1])
def test_a_torn_last_record_is_ignored(tmp_path: Path, torn: int) -> None:
    """Of a record that was only begun nothing is read, and the whole ones before it are."""
    recorder = Recorder(described(tmp_path))
    for sample in range(3):
        recorder(Kind.READ, sample)
    recorder.close()
    with (tmp_path / "events-0.bin").open("ab") as file:
        file.write(b"\xff" * torn)
    assert [0, 1, 2] == History.load(tmp_path).events["sample"].tolist()


@given(st.floats(0, 1, exclude_max=True))
@settings(max_examples=30, deadline=None)
def test_a_torn_text_loses_only_itself(where: float) -> None:
    """A text that was cut anywhere is ignored; those that other processes wrote before and after it are whole."""
    with trial_folder() as folder:
        before, killed, after = Recorder(folder), Recorder(folder), Recorder(folder)
        before.text(type="a", message="before")
        start = (folder / "texts-0.jsonl").stat().st_size
        killed.text(type="b", message="the end of this is missing")
        end = (folder / "texts-0.jsonl").stat().st_size
        os.truncate(folder / "texts-0.jsonl", start + int(where * (end - start)))
        after.text(type="c", message="after")
        after.text(type="d", message="and after")
        for recorder in (before, killed, after):
            recorder.close()
        lines = (folder / "texts-0.jsonl").read_bytes().splitlines()
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line)["message"])
        assert ["before", "after", "and after"] == found
        assert {"before", "after", "and after"} == {text["message"] for text in History.load(folder).texts.values()}


def test_a_pickled_recorder_writes_to_the_same_record(tmp_path: Path) -> None:
    """A copy that was pickled, as for a spawned worker, appends to the same files with its own descriptors."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.READ, 1)
    copy = pickle.loads(pickle.dumps(recorder))
    copy(Kind.READ, 2)
    assert not recorder.descriptors() & copy.descriptors()
    recorder(Kind.READ, 3)
    copy.close()
    recorder.close()
    assert [1, 2, 3] == History.load(tmp_path).events["sample"].tolist()


@pytest.mark.parametrize("how", ["closed by someone", "given back"])
def test_a_record_continues_after_its_descriptors_were_closed(tmp_path: Path, how: str) -> None:
    """A loader that closes all descriptors, or close() itself, only makes the next record open its file again."""
    recorder = Recorder(described(tmp_path))
    writes: list[Callable[[], Any]] = [
        lambda: recorder(Kind.READ, 1),
        lambda: recorder.many(Kind.ARRIVED, np.array([2, 3]), 0, 1, 0),
        lambda: recorder(Kind.RAISED, 4, aux=recorder.text(type="t", message="said")),
    ]
    for write in [*writes, *writes]:
        write()
        if how == "given back":
            recorder.close()
        else:
            for descriptor in recorder.descriptors():
                os.close(descriptor)
    recorder.close()  # which finds them closed already
    history = History.load(tmp_path)
    assert [1, 2, 3, 4] * 2 == history.events["sample"].tolist()
    assert ["said", "said"] == [history.text(event) for event in history.of(Kind.RAISED)]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    """An error of the file that is not a closed descriptor is not swallowed."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.READ)
    full = os.open("/dev/full", os.O_WRONLY)
    for descriptor in recorder.descriptors():
        os.dup2(full, descriptor)
    os.close(full)
    for write in (
        lambda: recorder(Kind.READ),
        lambda: recorder.many(Kind.READ, [1], 0, 0, 0),
        lambda: recorder.text(m=""),
    ):
        with pytest.raises(OSError, match="No space left"):
            write()
    recorder.close()


def test_a_forked_process_records_under_its_own_name(tmp_path: Path) -> None:
    """A child's records, rows and texts carry its pid from the first one on, whichever of them comes first."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.RAISED, 0, aux=recorder.text(type="t", message="the parent's"))
    first = in_child(lambda: recorder.many(Kind.ARRIVED, np.array([1, 2]), 0, 1, 0))
    second = in_child(lambda: recorder(Kind.RAISED, 3, aux=recorder.text(type="t", message="the child's")))
    third = in_child(lambda: recorder(Kind.RAISED, 4, aux=recorder.text(type="t", message="the parent's")))
    recorder.close()
    history = History.load(tmp_path)
    assert [os.getpid(), first, first, second, third] == history.events["pid"].tolist()
    said = [history.text(event) for event in history.of(Kind.RAISED)]
    assert ["the parent's", "the child's", "the parent's"] == said


def test_threads_get_numbers_of_their_own(tmp_path: Path) -> None:
    """Texts of several threads are found under the right numbers."""
    recorder = Recorder(described(tmp_path))
    gate = threading.Barrier(4)

    def work(thread: int) -> None:
        gate.wait()
        for step in range(200):
            name = thread * 1000 + step
            recorder(Kind.RAISED, name, aux=recorder.text(type="t", message=str(name)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    history = History.load(tmp_path)
    assert 800 == len(history.events)
    assert [str(event["sample"]) for event in history.events] == [history.text(event) for event in history.events]


def test_the_same_text_again_and_again_is_stored_once(tmp_path: Path) -> None:
    """A loader that tries one bad sample without end does not fill the disk with tracebacks."""
    recorder = Recorder(described(tmp_path))
    error = OSError("sample 5 cannot be read")
    numbers = {recorder.error(error) for _ in range(1000)}
    assert 1 == len(numbers)
    others = {recorder.text(type="t", message=str(n)) for n in range(1000)}
    assert 1000 == len(others)
    recorder.close()
    assert 1001 == len(History.load(tmp_path).texts)


def test_a_number_that_no_field_can_hold_is_recorded_as_the_nearest(tmp_path: Path) -> None:
    """A loader that reports 2**70 skips, or an id of a hundred digits, does not end the record."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.REPORTED, 2**70, aux=-(2**70))
    recorder.many(Kind.REPORTED, [5, -(10**100)], 1, 0, 0)
    recorder.close()
    history = History.load(tmp_path)
    assert [2**63 - 1, 5, -(2**63)] == history.events["sample"].tolist()
    assert [-(2**31), 1, 1] == history.events["aux"].tolist()


class _NoMessageError(Exception):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("bad\nsample"), "builtins.ValueError", "bad\nsample"),
        ("a mere reason", "str", "a mere reason"),
        (_NoMessageError(), "test_event_log._NoMessageError", "<str() of it raised SystemExit>"),
        (KeyError("x" * 10_000), "builtins.KeyError", "'" + "x" * 3999),
    ],
)
def test_any_error_can_be_reported(tmp_path: Path, error: Any, kind: str, message: str) -> None:
    """Type and message of an error are kept, also when it has no message to give, and within a limit."""
    recorder = Recorder(described(tmp_path))
    number = recorder.error(error)
    recorder.close()
    text = History.load(tmp_path).texts[os.getpid(), number]
    assert (kind, message) == (text["type"], text["message"])


def test_an_error_is_reported_with_its_family_and_its_way(tmp_path: Path) -> None:
    """The record of an error names its base classes and contains its traceback, so that checks can see its kind."""
    recorder = Recorder(described(tmp_path))
    try:
        os.open(tmp_path / "nowhere", os.O_RDONLY)
    except FileNotFoundError as caught:
        number = recorder.error(caught)
    recorder.close()
    text = History.load(tmp_path).texts[os.getpid(), number]
    assert ["builtins.FileNotFoundError", "builtins.OSError"] == text["bases"][:2]
    assert "os.open(tmp_path" in text["traceback"]


def test_an_error_is_recorded_with_its_causes(tmp_path: Path) -> None:
    """The causes of an error are kept, as a traceback shows them: ``from error``, and what was being handled."""
    recorder = Recorder(described(tmp_path))
    error = RuntimeError("worker 1 failed")
    error.__cause__ = ValueError("a.jpg cannot be read")
    error.__cause__.__context__ = KeyError("a.jpg")
    number = recorder.error(error)
    hidden = RuntimeError("worker 1 failed")
    hidden.__context__, hidden.__suppress_context__ = ValueError("a.jpg"), True
    bare = recorder.error(hidden)
    recorder(Kind.RAISED, aux=number)
    recorder(Kind.RAISED, aux=bare)
    recorder.close()
    history = History.load(tmp_path)
    first, second = history.of(Kind.RAISED)
    assert [("builtins.ValueError", "a.jpg cannot be read"), ("builtins.KeyError", "'a.jpg'")] == history.causes(first)
    assert "worker 1 failed\na.jpg cannot be read\n'a.jpg'" == history.chain(first)
    assert [] == history.causes(second)


def test_the_record_keeps_out_of_the_way(tmp_path: Path) -> None:
    """Its descriptors are high, and not inherited by programs that the loader starts."""
    recorder = Recorder(described(tmp_path))
    recorder(Kind.READ)
    assert 2 == len(recorder.descriptors())
    for descriptor in recorder.descriptors():
        assert descriptor >= 700
        assert not os.get_inheritable(descriptor)
    recorder.close()
