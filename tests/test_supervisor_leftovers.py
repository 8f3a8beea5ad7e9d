"""What outlives its loader, or never ends, is reported and removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.hang_holding_lock import HangHoldingLock
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.processes.process_tree import descendants
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Kind, Where
from badbatch.harness.trial.history import History
from badbatch.harness.trial.phases import rebuilt
from staging import (
    EVERYTHING,
    LOADER,
    ON_STAGE,
    ROGUES,
    Run,
    delivered,
    errors,
    spec,
    wait_until,
)

pytestmark = ON_STAGE


def test_daemons_are_found_and_ended(run: Run) -> None:
    """Processes that left the family's session and ignore every signal are reported as left behind, and are ended."""
    history = run("leaves_daemons")
    assert EVERYTHING == delivered(history)
    assert 3 == len(history.ended.leftovers)
    assert {"process"} == {entry["what"] for entry in history.ended.leftovers}


@pytest.fixture(scope="module")
def waited(supervisor: Supervisor, temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, History]:
    """Trials that only waiting ends, all at once: waiting costs no processor time."""
    standing = set(descendants())
    forked = {
        "child": spec("leaves_a_child", phases=rebuilt()),
        "files": spec("leaves_files", phases=rebuilt()),
        "busy": spec("busy", deadline_s=3.0),
        "stalls": spec("stalls", deadline_s=20.0),
        "lock held": spec("well", {5: HangHoldingLock()}, deadline_s=20.0),
        "ignores signals": spec("ignores_signals", deadline_s=20.0),
        "stops itself": spec("stops_itself", deadline_s=20.0),
        "daemon": spec("leaves_daemons_and_stalls", deadline_s=20.0),
        "hops": spec("leaves_what_hops", deadline_s=3.0),
        "pipe": spec("fills_a_pipe", deadline_s=20.0),
        "output": spec("fills_its_own_output", deadline_s=20.0),
        "descriptors": spec("closes_all_descriptors_and_stalls", deadline_s=20.0),
        "shared memory": spec("keeps_shared_memory", deadline_s=20.0),
        "tensor file": spec("keeps_a_tensor_file", deadline_s=20.0),
        "no tracker": spec("loses_its_tracker", deadline_s=20.0),
        "workers": spec("torch_loader", {5: Hang(), 9: Hang()}, workers=2, deadline_s=20.0),
        "spawned workers": spec("torch_loader", {5: Hang()}, workers=1, start_method="spawn", deadline_s=20.0),
    }
    fresh = {
        "fresh, workers": spec("torch_loader", workers=2),
        "fresh, ranks": spec("torch_loader", ranks=2),
        "fresh, crash": spec("torch_loader", {5: Segfault()}),
        "fresh, hang": spec("torch_loader", {5: Hang()}, workers=2, deadline_s=60.0),
        "fresh, daemons": spec("leaves_daemons"),
    }
    folder = tmp_path_factory.mktemp("waited")
    found: dict[str, History] = {}
    with Supervisor(LOADER, ROGUES, isolation="spawn") as spawning:
        assert ("spawn", "asked for") == (spawning.isolation, spawning.isolation_why)
        names = {
            (own, own.start(one, folder / name)): name
            for own, asked in ((supervisor, forked), (spawning, fresh))
            for name, one in asked.items()
        }

        def collect() -> bool:
            for own in (supervisor, spawning):
                found.update({names[own, number]: History.load(path) for number, path in own.finished(0.1)})
            return len(found) == len(names)

        wait_until(collect, "all have ended", 100.0)
    wait_until(lambda: set(descendants()) <= standing, "all processes have gone")
    return found


def test_a_child_that_outlives_its_loader_is_reported_twice(waited: dict[str, History]) -> None:
    """It is seen from inside, after the loader was closed, and from outside, after its rank had ended."""
    history = waited["child"]
    [inside] = history.of(Kind.LEFTOVER)
    assert "(sleeping)" in history.text(inside)
    assert 2 == len(history.ended.leftovers)  # one of each of the two loaders
    assert history.complete


def test_temporary_files_are_reported_and_removed(waited: dict[str, History]) -> None:
    """What a loader leaves in its temporary folder is in the record, and no longer on the disk."""
    history = waited["files"]
    names = sorted(history.text(event) for event in history.of(Kind.LEFTOVER))
    assert 2 == len(names)
    assert names[1] == f"{names[0]}/kept"
    assert history.folder is not None
    assert not (Path(history.folder) / "tmp").exists()


def test_a_deep_folder_leaves_room_for_sockets(
    supervisor: Supervisor, tmp_path: Path, histories: list[History]
) -> None:
    """However long the path of a trial's folder is, sockets with names of 80 bytes fit into its temporary folder; nothing is left."""
    before = set(Path("/tmp").glob("bb-*"))
    deep = tmp_path / "a" / ("deep-" * 20) / "run"
    for _ in range(2):
        history = supervisor.run(spec("listens_in_its_temporary_folder", ranks=2), deep / str(len(histories)))
        histories.append(history)
        assert not errors(history, Where.NEXT)
        assert not history.of(Kind.LEFTOVER).size
    left = [link for private in set(Path("/tmp").glob("bb-*")) - before for link in _links(private) if str(deep) in link]
    assert not left


def _links(folder: Path) -> list[str]:
    """Where the links in a folder of any trial lead; others may remove theirs meanwhile."""
    try:
        return [os.readlink(entry) for entry in folder.iterdir()]
    except OSError:
        return []


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("busy", "out of time"),
        ("stalls", "stalled"),
        ("lock held", "stalled"),
        ("ignores signals", "stalled"),
        ("stops itself", "stalled"),
        ("daemon", "stalled"),
        ("hops", "out of time"),
        ("pipe", "stalled"),
        ("output", "stalled"),
        ("descriptors", "stalled"),
        ("shared memory", "stalled"),
        ("tensor file", "stalled"),
        ("no tracker", "stalled"),
        ("workers", "stalled"),
        ("spawned workers", "stalled"),
    ],
)
def test_what_never_ends_is_ended(waited: dict[str, History], name: str, word: str) -> None:
    """Whatever it does to continue, it is cut, and reported as busy or as waiting."""
    history = waited[name]
    # To start an interpreter for the worker may take most of the time on a loaded machine.
    assert history.ended.cut in ((word, "out of time") if name == "spawned workers" else (word,))
    assert (None,) == history.ended.ranks
    assert not history.complete
    assert history.ended.seconds < history.spec.deadline_s + 5
    if name not in ("lock held", "workers", "spawned workers"):
        assert EVERYTHING[:4] == delivered(history)


def test_a_busy_loop_shows_where_it_is(waited: dict[str, History]) -> None:
    """The stacks of a loop name its function, and the state of its process says that it runs."""
    history = waited["busy"]
    assert " in busy\n" in history.stacks
    [process] = history.ended.evidence
    assert "running" == process["state"]


@pytest.mark.parametrize("name", ["stalls", "lock held", "workers"])
def test_a_stall_shows_what_it_waits_for(waited: dict[str, History], name: str) -> None:
    """State, wait channel and stacks of each process of a stalled trial are recorded, also while the lock is held."""
    history = waited[name]
    assert {"sleeping"} == {process["state"] for process in history.ended.evidence}
    assert (3 if name == "workers" else 1) == len(history.ended.evidence)
    assert all({"pid", "ppid", "name", "waits_in"} <= set(process) for process in history.ended.evidence)
    if os.access("/proc/1/wchan", os.R_OK) and Path("/proc/self/wchan").read_text(encoding="utf-8") != "":
        assert all(process["waits_in"] for process in history.ended.evidence)
    function = {"stalls": " in stalls\n", "lock held": " in strike\n", "workers": " in strike\n"}[name]
    assert (2 if name == "workers" else 1) == history.stacks.count(function)


def test_a_stopped_process_is_reported_as_stopped(waited: dict[str, History]) -> None:
    """What cannot answer for its stacks is known by its state."""
    [process] = waited["stops itself"].ended.evidence
    assert "stopped" == process["state"]


@pytest.mark.parametrize("name", ["shared memory", "tensor file", "no tracker"])
def test_shared_memory_of_what_was_killed_is_removed(waited: dict[str, History], name: str) -> None:
    """Segments and semaphores are removed with the processes that made them, whichever process should have removed them."""
    paths = waited[name].output.splitlines()[0].split()
    assert paths
    assert all(path.startswith("/dev/shm/") for path in paths)
    assert [] == [path for path in paths if os.path.exists(path)]


# A fresh interpreter for each rank.


@pytest.mark.parametrize("name", ["workers", "ranks", "daemons"])
def test_a_trial_in_a_fresh_interpreter_runs_to_its_end(waited: dict[str, History], name: str) -> None:
    """With ``isolation="spawn"`` every sample arrives, with workers and with ranks, and daemons are found and ended."""
    history = waited[f"fresh, {name}"]
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert (3 if name == "daemons" else 0) == len(history.ended.leftovers)


def test_a_crash_in_a_fresh_interpreter_is_reported(waited: dict[str, History]) -> None:
    """A segmentation fault ends the rank and is reported as that."""
    assert (-11,) == waited["fresh, crash"].ended.ranks
    assert [5] == waited["fresh, crash"].struck.tolist()


def test_a_hang_in_a_fresh_interpreter_is_ended(waited: dict[str, History]) -> None:
    """It is cut, with the stacks of what hangs as evidence."""
    history = waited["fresh, hang"]
    assert history.ended.cut in ("stalled", "out of time")
    assert " in strike\n" in history.stacks
