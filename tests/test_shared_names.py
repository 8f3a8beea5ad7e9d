"""Trials of a loader that gives shared memory fixed names do not meet in ``/dev/shm``."""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trials
from badbatch.conformance.engine.shared_names import SharedNames
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options
from badbatch.conformance.report.model import Report
from badbatch.harness.processes import shared_memory
from badbatch.harness.processes.shared_memory import SHARED_MEMORY, Conditions, Creations, can_be_private, enter_private
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.history import Ended, History
from history_dsl import history_of

from fixtures.loaders.global_names import MEETING, NAME

LOADER = "fixtures.loaders.global_names:lines"
OPTIONS = Options(workers=(0,), ranks=(1, 2), scenarios=("clean", "one-bad", "tiny", "drop-last"))
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="segments are files on Linux alone")
private = pytest.mark.skipif(sys.platform != "linux" or not can_be_private(), reason="mounts are not allowed here")


def side_by_side(conditions: Conditions, folder: Path, meeting: Path, monkeypatch: pytest.MonkeyPatch) -> list[History]:
    """Two trials of the loader that demonstrably run at the same time."""
    meeting.mkdir()
    monkeypatch.setenv(MEETING, str(meeting))
    spec = trials.question(LOADER, "clean", source="jsonl")
    with Supervisor(LOADER, trials.ROOT) as supervisor:
        started = {supervisor.start(spec, folder / str(n), conditions) for n in range(2)}
        ended: dict[int, Path] = {}
        while started - ended.keys():
            ended.update(supervisor.finished(1.0))
    return [History.load(where) for where in ended.values()]


def delivered(history: History) -> int:
    """How many batches arrived."""
    return len(history.of(Kind.GOT))


def whole(history: History) -> int:
    """How many batches an epoch has."""
    return -(-history.spec.samples // history.spec.batch_size)


def test_without_a_mount_two_trials_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader is one that needs it: at the same time, its trials take samples from each other."""
    found = side_by_side(Conditions(watched=True), tmp_path / "trials", tmp_path / "meeting", monkeypatch)
    assert sum(map(delivered, found)) < 2 * whole(found[0])
    assert any(f"{NAME}_0" in history.ended.segments for history in found)


@private
def test_two_trials_at_the_same_time_do_not_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a ``/dev/shm`` of its own, and delivers everything; nothing of it is left."""
    found = side_by_side(Conditions(private=True, watched=True), tmp_path / "trials", tmp_path / "meeting", monkeypatch)
    first, second = found
    assert delivered(first) == delivered(second) == whole(first)
    assert first.ended.private
    assert list(first.ended.segments) == [f"{NAME}_0"]
    assert first.events["time"].min() < second.events["time"].max()
    assert second.events["time"].min() < first.events["time"].max()
    assert not list(Path(SHARED_MEMORY).glob(f"{NAME}*"))


def report_of(options: Options) -> Report:
    """The report of a suite."""
    with Suite(LOADER, options, trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


@private
def test_a_suite_finds_out_and_says_so() -> None:
    """The loader passes, and the report says how its trials were kept apart."""
    report = report_of(OPTIONS)
    assert report.ok, report
    [note] = report.notes
    assert note.startswith(f"each trial has its own {SHARED_MEMORY}: the loader makes shared memory with fixed names ({NAME}_0")


def test_where_a_mount_is_not_possible_trials_run_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader passes there too, since no two of its trials overlap."""
    monkeypatch.setattr(Supervisor, "can_be_private", False)
    report = report_of(dataclasses.replace(OPTIONS, keep=tmp_path))
    assert report.ok, report
    [note] = report.notes
    assert note.startswith("trials run one at a time: the loader makes shared memory with fixed names")
    spans = sorted(
        (int(events["time"].min()), int(events["time"].max()))
        for events in (History.load(folder).events for folder in tmp_path.iterdir() if (folder / "trial.json").exists())
    )
    assert len(spans) >= 4
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))


def learned(possible: bool, *trials_: tuple[bool, Sequence[str]]) -> SharedNames:
    """What is known after some trials: whether each had a mount, and the names that it made."""
    names = SharedNames(possible)
    for number, (mounted, made) in enumerate(trials_):
        history = history_of("0-3 end")
        ended = Ended(private=mounted, segments=tuple(made), watched=(2 * number, 2 * number + 1))
        names.learn(dataclasses.replace(history, ended=ended), wanted_private=mounted)
    return names


@pytest.mark.parametrize(
    ("possible", "made", "found"),
    [
        (True, [(True, ["000000_locals"])], ("000000_locals",)),
        (True, [(True, ["sem.lib_lock", "sem.a1B2c3"])], ("sem.lib_lock",)),
        (False, [(False, ["000000_locals"])], ()),
        (False, [(False, ["000000_locals"]), (False, ["000000_locals", "other"])], ("000000_locals",)),
        (True, [(True, ["sem.locals"]), (True, ["sem.locals"])], ("sem.locals",)),
        (True, [(True, [])], ()),
    ],
)
def test_which_names_are_fixed(possible: bool, made: list[tuple[bool, list[str]]], found: tuple[str, ...]) -> None:
    """Those that two trials made; in a mount of its own, those of one trial that have no random part."""
    names = learned(possible, *made)
    assert names.found == found
    assert bool(names.about) == bool(found)
    assert names.one_at_a_time == (bool(found) and not possible)


def test_a_name_with_the_number_of_a_process_is_not_fixed() -> None:
    """Another trial has other processes."""
    history = history_of("0-3 end")
    pid = int(history.events["pid"][0])
    names = SharedNames(possible=True)
    names.learn(dataclasses.replace(history, ended=Ended(private=True, segments=(f"lib-{pid}-x",))), wanted_private=True)
    assert names.found == ()


def test_trials_at_the_same_time_see_the_same_names() -> None:
    """In the common folder, a name that appeared while both ran was made once; one that a later trial makes again is fixed."""
    names = SharedNames(possible=False)
    for watched, found in (((0, 10), ()), ((5, 15), ()), ((20, 25), ("random",))):
        ended = Ended(segments=("random",), watched=watched)
        names.learn(dataclasses.replace(history_of("0-3 end"), ended=ended), wanted_private=False)
        assert names.found == found


def test_a_mount_that_fails_is_not_counted_on() -> None:
    """Then the trials run one at a time."""
    names = SharedNames(possible=True)
    for number in range(2):
        ended = Ended(private=False, segments=("fixed",), watched=(2 * number, 2 * number + 1))
        names.learn(dataclasses.replace(history_of("0-3 end"), ended=ended), wanted_private=True)
    assert names.one_at_a_time


def test_processes_take_turns() -> None:
    """Where trials must not overlap, those of another process wait."""
    one, other = SharedNames(possible=False), SharedNames(possible=False)
    assert got_turn(one)
    assert not other.take_turn()
    one.give_back_turn()
    assert got_turn(other)
    other.give_back_turn()


def got_turn(names: SharedNames) -> bool:
    """Whether it is given the turn before a deadline: other tests on this machine may have it for a moment."""
    deadline = time.monotonic() + 60
    while not names.take_turn():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def in_a_child(work: Callable[[], bool]) -> bool:
    """What a function returns in a fork of this process."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@private
def test_what_is_made_in_a_mount_is_seen_there_alone() -> None:
    """A segment of the trial is not in the common folder, and those there are not in the trial's; its names are recorded."""
    common = Path(SHARED_MEMORY) / f"badbatch_test_{os.getpid()}"
    own = Path(SHARED_MEMORY) / f"badbatch_own_{os.getpid()}"

    def work() -> bool:
        if not enter_private():
            return False
        creations = Creations()
        own.touch()
        for name in ("psm_0a1b2c3d", "torch_12_345_0", "sem.mp-abcdefgh", "sem.bb0123456789-x"):  # random ones are not recorded
            Path(SHARED_MEMORY, name).touch()
            Path(SHARED_MEMORY, name).unlink()
        return os.listdir(SHARED_MEMORY) == [own.name] and creations.names() == [own.name]

    common.touch()
    try:
        assert in_a_child(work)
        assert not own.exists()
    finally:
        common.unlink()


@private
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_without_rights_gets_none(tmp_path: Path) -> None:
    """In a user namespace, what a trial has no permission to read stays closed."""
    nobody = 65534
    closed = tmp_path / "closed"
    closed.write_text("x", encoding="utf-8")
    os.chown(closed, nobody, nobody)
    closed.chmod(0)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == 0 and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o711)

    def work() -> bool:
        os.setgid(nobody)
        os.setuid(nobody)
        if not enter_private():
            return True  # not allowed to this user: then the trials run one at a time
        return os.getuid() == nobody and not os.access(closed, os.R_OK) and os.listdir(SHARED_MEMORY) == []

    assert in_a_child(work)


def test_a_process_with_segments_of_the_common_folder_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the import of a loader put there must stay visible to its trials."""
    monkeypatch.setattr(shared_memory, "mapped_segments", lambda: {f"{SHARED_MEMORY}/one"})
    assert not can_be_private()
