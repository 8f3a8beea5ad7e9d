"""No fault can hang, crash, slow or leak into the harness. Real processes, through the one boundary that starts them."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from badbatch.harness import supervisor as supervisor_module
from badbatch.harness.errors import HarnessError, LoaderError
from badbatch.harness.family import descendants, state
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.hang_holding_lock import HangHoldingLock
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.history import History
from badbatch.harness.plan import FaultPlan
from badbatch.harness.recorder import Content, Kind, Where
from badbatch.harness.spec import Topology, TrialSpec
from badbatch.harness.supervisor import Supervisor

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="orphans are found, and forking is the default, on Linux alone"
)

ROGUES = Path(__file__).parent / "rogues"
LOADER = "rogue_loaders:well"
SOON_S = 30.0  # a deadline for waiting, not a measure
EVERYTHING = list(range(40))


def wait_until(reached: Callable[[], Any], what: str, within_s: float = SOON_S) -> Any:
    """The first true answer; fails when none comes."""
    deadline = time.monotonic() + within_s
    while not (answer := reached()):
        assert time.monotonic() < deadline, f"waited {within_s} s in vain until {what}"
        time.sleep(0.01)
    return answer


def spec(name: str = "well", plan: Any = None, workers: int = 0, ranks: int = 1, **settings: Any) -> TrialSpec:
    """A trial of one of the rogue loaders."""
    settings = {"deadline_s": 60.0, "source": "map", **settings}
    return TrialSpec(
        loader=name if ":" in name else f"rogue_loaders:{name}",
        directory=str(ROGUES),
        scenario=name,
        topology=Topology(workers, ranks, settings.pop("start_method", None)),
        plan=FaultPlan(plan or {}),
        **settings,
    )


def delivered(history: History) -> list[int]:
    """The ids of all samples that arrived whole."""
    arrived = history.of(Kind.ARRIVED)
    return sorted(arrived["sample"][arrived["flags"] == Content.WHOLE].tolist())


def errors(history: History, where: Where) -> list[str]:
    """Class and message of what the consumer caught there."""
    raised = history.of(Kind.RAISED)
    return [f"{history.text(e, 'type')}: {history.text(e)}" for e in raised[raised["flags"] == where]]


def unreadable(history: History) -> set[str]:
    """What was said of batches and reports that cannot be read."""
    return {history.text(event) for event in history.of(Kind.UNREADABLE)}


def open_descriptors() -> collections.Counter[str]:
    """What the descriptors of this process lead to."""
    found: collections.Counter[str] = collections.Counter()
    for name in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{name}")] += 1
        except OSError:  # that of the listing
            continue
    return found


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary folder of our own, in which nothing may be left."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr("tempfile.tempdir", None)
        yield folder


@pytest.fixture(scope="module")
def supervisor(temporary: Path) -> Iterator[Supervisor]:
    """One supervisor for all trials of the rogue loaders."""
    with Supervisor(LOADER, ROGUES) as one:
        yield one


@pytest.fixture
def histories() -> list[History]:
    """The trials that a test has run."""
    return []


@pytest.fixture(autouse=True)
def nothing_is_left(supervisor: Supervisor, temporary: Path, histories: list[History]) -> Iterator[None]:
    """After each test: no process, no shared memory, no temporary file, no descriptor beyond what there was before."""
    processes, descriptors = set(descendants()), open_descriptors()
    yield
    wait_until(lambda: not set(descendants()) - processes, "the processes of this test have gone")
    assert supervisor._process is not None
    assert supervisor._process.poll() is None, "the warm process has died"
    assert not open_descriptors() - descriptors
    assert [] == os.listdir(temporary)
    pids = {int(pid) for history in histories for pid in history.events["pid"]}
    named = [re.match(r"[a-z]+_(\d+)_", name) for name in os.listdir("/dev/shm")]
    assert not [match.string for match in named if match and int(match.group(1)) in pids]
    for history in histories:
        assert history.folder is not None
        assert not (Path(history.folder) / "tmp").exists()


Run = Callable[..., History]


@pytest.fixture
def run(supervisor: Supervisor, tmp_path: Path, histories: list[History]) -> Run:
    """Runs one trial of a rogue loader."""

    def one(name: str = "well", plan: Any = None, **settings: Any) -> History:
        histories.append(supervisor.run(spec(name, plan, **settings), tmp_path / f"run-{len(histories)}"))
        return histories[-1]

    return one


class Trial:
    """A trial under way, whose processes a test can name."""

    def __init__(self, supervisor: Supervisor, folder: Path, asked: TrialSpec, histories: list[History]) -> None:
        self.folder = folder
        self.ranks = asked.topology.ranks
        self._supervisor = supervisor
        self._histories = histories
        self._number = supervisor.start(asked, folder)

    def until(self, kind: Kind, ranks: int = 1) -> None:
        """Wait for an event on so many ranks."""

        def reached() -> bool:
            return len(set(History.load(self.folder).of(kind)["rank"])) >= ranks

        wait_until(reached, f"{kind.name} was recorded")

    def rank(self, rank: int = 0) -> int:
        """The process of a rank."""
        return int(History.load(self.folder).of(Kind.BUILDING, rank=rank)[0]["pid"])

    def struck(self) -> int:
        """The process in which a fault took hold."""
        return int(History.load(self.folder).of(Kind.FAULT)[0]["pid"])

    def warden(self) -> int:
        """The process that watches it."""
        return psutil.Process(self.rank()).ppid()

    def history(self) -> History:
        """Wait for its end."""
        ended: list[Path] = []

        def reached() -> bool:
            ended.extend(folder for number, folder in self._supervisor.finished(1.0) if number == self._number)
            return bool(ended)

        wait_until(reached, "the trial ended", 100.0)
        self._histories.append(History.load(ended[0]))
        return self._histories[-1]


Start = Callable[..., Trial]


@pytest.fixture
def start(supervisor: Supervisor, tmp_path: Path, histories: list[History]) -> Start:
    """Begins a trial of a rogue loader."""

    def one(name: str = "torch_loader", plan: Any = None, **settings: Any) -> Trial:
        return Trial(supervisor, tmp_path / "trial", spec(name, plan, **settings), histories)

    return one


# What a trial is when nothing goes wrong, so that what follows can be told from it.


@pytest.mark.parametrize(("workers", "ranks"), [(0, 1), (2, 1), (0, 2)])
def test_a_trial_without_a_fault_runs_to_its_end(run: Run, workers: int, ranks: int) -> None:
    """Every sample arrives, every rank finishes, nothing is left."""
    history = run("torch_loader", workers=workers, ranks=ranks)
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert ("ended", (0,) * ranks, ()) == (str(history.ended), history.ended.ranks, history.ended.leftovers)


def test_many_trials_run_at_once(supervisor: Supervisor, tmp_path: Path, histories: list[History]) -> None:
    """Eight trials that each wait two seconds end together, and each with its own number and folder."""
    asked = spec(plan={5: Hang(release_after_s=2.0)})
    began = time.monotonic()
    numbers = {supervisor.start(asked, tmp_path / str(n)): tmp_path / str(n) for n in range(8)}
    assert numbers == supervisor.folders()
    ended: dict[int, Path] = {}
    wait_until(lambda: ended.update(supervisor.finished(1.0)) or len(ended) == 8, "all ended")
    assert time.monotonic() - began < 8 * 2.0
    assert numbers == ended
    assert 0 == supervisor.running
    histories += [History.load(folder) for folder in ended.values()]
    assert all(history.complete and delivered(history) == EVERYTHING for history in histories)


def test_a_relative_folder_is_that_of_the_caller(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial runs in the loader's folder, but its own is found from where it was asked for."""
    monkeypatch.chdir(tmp_path)
    assert supervisor.run(spec(), Path("there")).complete
    assert (tmp_path / "there" / "ended.json").exists()


# Killed from outside.


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_rank_ends_its_trial(start: Start, workers: int) -> None:
    """kill -9 of the consumer is told as that, and its workers go with it, a hung one too."""
    trial = start(plan={5: Hang()}, workers=workers)
    trial.until(Kind.FAULT)
    os.kill(trial.rank(), signal.SIGKILL)
    history = trial.history()
    assert (None, (-9,)) == (history.ended.cut, history.ended.ranks)
    assert "killed by signal 9" == str(history.ended)
    assert not history.complete
    assert [5] == history.struck.tolist()


def test_one_killed_rank_of_two_does_not_keep_the_other(start: Start) -> None:
    """The rank that is left runs to its end, or is ended; the trial tells which of them died."""
    trial = start(plan={5: Hang(), 4: Hang()}, ranks=2, deadline_s=5.0)
    trial.until(Kind.FAULT, ranks=2)
    os.kill(trial.rank(1), signal.SIGKILL)
    history = trial.history()
    assert (None, -9) == history.ended.ranks
    assert history.ended.cut in ("stalled", "out of time")


def test_a_killed_worker_does_not_hang_the_trial(start: Start) -> None:
    """kill -9 of a worker is the loader's affair: whatever it makes of it, the trial ends in time and whole."""
    trial = start(plan={5: Hang()}, workers=2, deadline_s=5.0)
    trial.until(Kind.FAULT)
    assert trial.struck() != trial.rank()
    os.kill(trial.struck(), signal.SIGKILL)
    history = trial.history()
    assert history.ended.seconds < 20
    assert len(history.of(Kind.RAISED)) or history.ended.cut


def test_a_killed_warden_loses_its_trial_and_nothing_else(start: Start, run: Run) -> None:
    """kill -9 of the warden is noticed at once, all that it watched is ended, and the next trial runs."""
    trial = start(plan={5: Hang()}, workers=2)
    trial.until(Kind.FAULT)
    os.kill(trial.warden(), signal.SIGKILL)
    history = trial.history()
    assert ("lost", (None,)) == (history.ended.cut, history.ended.ranks)
    assert [5] == history.struck.tolist()
    assert run().complete


def test_a_warden_that_its_loader_kills_is_lost_too(run: Run) -> None:
    """A loader that kills its parent, with a daemon started before, gains nothing."""
    history = run("kills_its_warden")
    assert "lost" == history.ended.cut
    assert EVERYTHING[:4] == delivered(history)


def test_a_killed_warden_takes_no_other_trial_along(
    supervisor: Supervisor, tmp_path: Path, histories: list[History]
) -> None:
    """What is cleared away after one warden is its own: a trial beside it runs to its end."""
    killed = Trial(supervisor, tmp_path / "killed", spec("torch_loader", {5: Hang()}, workers=2), histories)
    beside = Trial(
        supervisor, tmp_path / "beside", spec("torch_loader", {5: Hang(release_after_s=3.0)}, workers=2), histories
    )
    killed.until(Kind.FAULT)
    beside.until(Kind.FAULT)
    os.kill(killed.warden(), signal.SIGKILL)
    ended: dict[Path, int] = {}
    wait_until(
        lambda: ended.update({folder: number for number, folder in supervisor.finished(1.0)}) or len(ended) == 2,
        "both ended",
    )
    assert "lost" == History.load(killed.folder).ended.cut
    assert History.load(beside.folder).complete


def test_a_stopped_warden_is_killed_in_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warden that its loader stops is told to stop, then killed: the supervisor's patience ends."""
    monkeypatch.setattr(supervisor_module, "_PATIENCE_S", 1.0)
    history = run("stops_its_warden", deadline_s=1.0)
    assert "lost" == history.ended.cut


def test_a_killed_warm_process_is_told_and_takes_its_trials_along(tmp_path: Path) -> None:
    """kill -9 of the process that forks the trials is an error of the harness, and leaves nothing."""
    with Supervisor(LOADER, ROGUES) as own:
        trial = Trial(own, tmp_path / "trial", spec("torch_loader", {5: Hang()}, workers=2), [])
        trial.until(Kind.FAULT)
        family = [trial.rank(), trial.struck(), trial.warden()]
        assert own._process is not None
        os.kill(own._process.pid, signal.SIGKILL)
        with pytest.raises(HarnessError, match=r"^the warm process is gone: signal 9 \(Killed\)$"):
            trial.history()
        with pytest.raises(HarnessError, match=r"^the warm process is gone: "):
            own.start(spec(), tmp_path / "next")
    wait_until(lambda: not any(state(pid) for pid in family), "its trials have ended")


def test_a_warm_process_that_answers_no_more_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process that forks the trials is stopped, the supervisor neither waits for ever nor leaves it behind."""
    monkeypatch.setattr(supervisor_module, "_PATIENCE_S", 0.5)
    with Supervisor(LOADER, ROGUES) as own:
        assert own._process is not None
        os.kill(own._process.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(HarnessError, match=r"^the warm process answers no more$"):
            own.run(spec(deadline_s=0.5), tmp_path / "trial")
        own.close()
        assert time.monotonic() - began < SOON_S


def test_a_supervisor_outlives_the_thread_that_made_it(tmp_path: Path) -> None:
    """The warm process does not die with the thread in which it was started."""
    made: list[Supervisor] = []
    thread = threading.Thread(target=lambda: made.append(Supervisor(LOADER, ROGUES)))
    thread.start()
    thread.join()
    with made[0] as own:
        assert own.run(spec(), tmp_path / "trial").complete


# Rogues that end, and what is told of them.


def test_a_loader_that_prints_megabytes_fills_nothing(run: Run) -> None:
    """Forty-eight megabytes later the trial is whole, its log is small, and the last line is in it."""
    history = run("prints")
    assert EVERYTHING == delivered(history)
    assert history.output.endswith("the last line")
    assert history.folder is not None
    assert (Path(history.folder) / "output-0.txt").stat().st_size < 5 << 20


@pytest.mark.parametrize(("name", "code"), [("exits_with_0", 0), ("exits_with_3", 3)])
def test_an_exit_of_the_consumer_is_no_end(run: Run, name: str, code: int) -> None:
    """os._exit is told with its code, and a code of 0 makes nothing complete."""
    history = run(name)
    assert (None, (code,)) == (history.ended.cut, history.ended.ranks)
    assert not history.complete
    assert EVERYTHING[:4] == delivered(history)
    assert Kind.ASK == history.events[history.events["kind"] != Kind.DELAY][-1]["kind"]


def test_a_loader_that_closes_all_descriptors_is_still_recorded(run: Run) -> None:
    """After os.closerange in the consumer the record goes on: every sample arrives."""
    history = run("closes_all_descriptors")
    assert EVERYTHING == delivered(history)
    assert history.complete


def test_a_worker_that_closes_all_descriptors_is_still_recorded(run: Run) -> None:
    """After os.closerange in a worker its reads are still recorded, and the trial ends in time."""
    history = run("closes_descriptors_in_workers", workers=2, timeout_s=1.0, deadline_s=10.0)
    reads = history.of(Kind.READ)
    [pid] = set(reads[reads["sample"] == 5]["pid"])
    assert {5, 6, 7} <= set(history.events[history.events["pid"] == pid]["sample"])
    assert pid != history.of(Kind.BUILDING)[0]["pid"]
    assert history.ended.seconds < 20


def test_a_loader_that_changes_its_process_changes_nothing_else(run: Run) -> None:
    """Directory, environment, umask, signal handlers, standard streams: the record is whole, and the next trial too."""
    history = run("changes_everything")
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert (None, (0,)) == (history.ended.cut, history.ended.ranks)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raises_system_exit", "builtins.SystemExit: 4"),
        ("raises_keyboard_interrupt", "builtins.KeyboardInterrupt: "),
        ("raises_what_has_no_words", "rogue_loaders.UnspeakableError: <str() of it raised RuntimeError>"),
    ],
)
def test_whatever_the_loader_raises_reaches_the_record(run: Run, name: str, error: str) -> None:
    """Also what is no Exception is caught and told, and the consumer asks on."""
    history = run(name)
    assert [error] == errors(history, Where.NEXT)
    assert history.complete


def test_a_loader_with_awkward_manners_is_told_for_each_of_them(run: Run) -> None:
    """Errors of len(), of what is skipped and of close() are recorded where they come up, and end nothing."""
    history = run("awkward")
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert ["builtins.RuntimeError: no length today"] * 2 == errors(history, Where.LENGTH)
    assert ["builtins.RuntimeError: no count today"] == errors(history, Where.REPORT)
    assert ["builtins.RuntimeError: no end today"] == errors(history, Where.CLOSE)


def test_a_report_that_makes_no_sense_is_told_in_one_line(run: Run) -> None:
    """What ``skipped`` holds is read as a count or as ids, or said to be neither."""
    history = run("babbling")
    assert history.complete
    assert {"loader.skipped is ('one', 'two'): must be a count, a list of ids, or a mapping of either"} == unreadable(
        history
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "returns_none",
            "rogue_loaders:returns_none returned a NoneType, which cannot be iterated: return an iterable",
        ),
        ("without_ids", "no sample ids found in a mapping with the keys 'picture'; give the batch a key or attribute"),
        ("unreadable", "the batch cannot be read: SystemExit: hands off"),
        ("unspeakable", "the batch cannot be read: UnspeakableError"),
    ],
)
def test_a_loader_whose_work_cannot_be_read_is_told_in_one_line(run: Run, name: str, says: str) -> None:
    """No iterable, no ids, a batch that fights back: the trial ends, and one line says why nothing was read."""
    history = run(name)
    assert history.complete
    [line] = unreadable(history)
    assert line.startswith(says)
    assert "\n" not in line


# What outlives its loader.


def test_daemons_are_found_and_ended(run: Run) -> None:
    """Processes that left the family's session and ignore every signal are told as left behind, and are gone."""
    history = run("leaves_daemons")
    assert EVERYTHING == delivered(history)
    assert 3 == len(history.ended.leftovers)
    assert {"process"} == {entry["what"] for entry in history.ended.leftovers}


@pytest.fixture(scope="module")
def waited(supervisor: Supervisor, temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, History]:
    """Trials that only waiting brings to an end, all at once: what they wait for costs no processor."""
    standing = set(descendants())
    forked = {
        "child": spec("leaves_a_child"),
        "files": spec("leaves_files"),
        "busy": spec("busy", deadline_s=3.0),
        "stalls": spec("stalls", deadline_s=12.0),
        "lock held": spec("well", {5: HangHoldingLock()}, deadline_s=12.0),
        "ignores signals": spec("ignores_signals", deadline_s=8.0),
        "stops itself": spec("stops_itself", deadline_s=8.0),
        "daemon": spec("leaves_daemons_and_stalls", deadline_s=8.0),
        "hops": spec("leaves_what_hops", deadline_s=3.0),
        "pipe": spec("fills_a_pipe", deadline_s=8.0),
        "output": spec("fills_its_own_output", deadline_s=8.0),
        "descriptors": spec("closes_all_descriptors_and_stalls", deadline_s=8.0),
        "shared memory": spec("keeps_shared_memory", deadline_s=8.0),
        "tensor file": spec("keeps_a_tensor_file", deadline_s=8.0),
        "no tracker": spec("loses_its_tracker", deadline_s=8.0),
        "workers": spec("torch_loader", {5: Hang(), 9: Hang()}, workers=2, deadline_s=12.0),
        "spawned workers": spec("torch_loader", {5: Hang()}, workers=1, start_method="spawn", deadline_s=20.0),
    }
    fresh = {
        "fresh, workers": spec("torch_loader", workers=2),
        "fresh, ranks": spec("torch_loader", ranks=2),
        "fresh, crash": spec("torch_loader", {5: Segfault()}),
        "fresh, hang": spec("torch_loader", {5: Hang()}, workers=2, deadline_s=20.0),
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


def test_a_child_that_outlives_its_loader_is_told_twice(waited: dict[str, History]) -> None:
    """It is seen from inside, after the loader was closed, and from outside, after its rank had gone."""
    history = waited["child"]
    [inside] = history.of(Kind.LEFTOVER)
    assert "(sleeping)" in history.text(inside)
    assert 1 == len(history.ended.leftovers)
    assert history.complete


def test_temporary_files_are_told_and_removed(waited: dict[str, History]) -> None:
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
    """However long the path of a trial's folder is, a loader can put sockets into its temporary folder; nothing is left."""
    deep = tmp_path / "a" / ("deep-" * 20) / "run"
    for _ in range(2):
        history = supervisor.run(spec("listens_in_its_temporary_folder", ranks=2), deep / str(len(histories)))
        histories.append(history)
        assert not errors(history, Where.NEXT)
        assert not history.of(Kind.LEFTOVER).size
    links = [link for link in Path("/tmp").glob("badbatch-*") if link.is_symlink()]
    assert not [link for link in links if str(deep) in os.readlink(link)]


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
    """Whatever it does to go on, it is cut, and told as busy or as waiting."""
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
    """State, wait channel and stacks of each process of a stalled trial are told, also while the lock is held."""
    history = waited[name]
    assert {"sleeping"} == {process["state"] for process in history.ended.evidence}
    assert (3 if name == "workers" else 1) == len(history.ended.evidence)
    assert all({"pid", "ppid", "name", "waits_in"} <= set(process) for process in history.ended.evidence)
    if os.access("/proc/1/wchan", os.R_OK) and Path("/proc/self/wchan").read_text(encoding="utf-8") != "":
        assert all(process["waits_in"] for process in history.ended.evidence)
    function = {"stalls": " in stalls\n", "lock held": " in strike\n", "workers": " in strike\n"}[name]
    assert (2 if name == "workers" else 1) == history.stacks.count(function)


def test_a_stopped_process_is_told_as_stopped(waited: dict[str, History]) -> None:
    """What cannot answer for its stacks is known by its state."""
    [process] = waited["stops itself"].ended.evidence
    assert "stopped" == process["state"]


@pytest.mark.parametrize("name", ["shared memory", "tensor file", "no tracker"])
def test_shared_memory_of_what_was_killed_is_removed(waited: dict[str, History], name: str) -> None:
    """Segments and semaphores go with the processes that made them, whoever was to remove them."""
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


def test_a_crash_in_a_fresh_interpreter_is_told(waited: dict[str, History]) -> None:
    """A segmentation fault ends the rank and is told as that."""
    assert (-11,) == waited["fresh, crash"].ended.ranks
    assert [5] == waited["fresh, crash"].struck.tolist()


def test_a_hang_in_a_fresh_interpreter_is_ended(waited: dict[str, History]) -> None:
    """It is cut, with the stacks of what hangs as evidence."""
    history = waited["fresh, hang"]
    assert history.ended.cut in ("stalled", "out of time")  # to start an interpreter may take most of its time
    assert " in strike\n" in history.stacks


def test_a_module_that_starts_threads_is_not_forked(tmp_path: Path) -> None:
    """Where forking is unsafe a fresh interpreter is used, with a word on why; who asks for forking gets it."""
    (tmp_path / "threaded.py").write_text(
        textwrap.dedent(
            """
            import threading

            threading.Thread(target=threading.Event().wait, name="ticker", daemon=True).start()

            def factory(job):
                assert any(thread.name == "ticker" for thread in threading.enumerate()), "no thread here"
                return [{"id": [0, 1]}]
            """
        ),
        encoding="utf-8",
    )
    with Supervisor("threaded:factory", tmp_path) as own:
        assert ("spawn", "importing the module started the thread 'ticker'") == (own.isolation, own.isolation_why)
        asked = dataclasses.replace(spec("threaded:factory"), directory=str(tmp_path))
        history = own.run(asked, tmp_path / "trial")
        assert not errors(history, Where.FACTORY)
        assert history.complete
    with Supervisor("threaded:factory", tmp_path, isolation="fork") as own:
        assert ("fork", "") == (own.isolation, own.isolation_why)


# Modules that cannot be held to anything. What is wrong with names and attributes stands in test_calling.py.

NAP = f"1000.{os.getpid()}"  # by which a sleeping process is known as ours

BAD_MODULES: dict[str, tuple[str, str]] = {
    "import": (
        "import nowhere_at_all\n",
        "bad_import cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'",
    ),
    "sys_exit": ("import sys\nsys.exit('no GPU')\n", "bad_sys_exit cannot be imported: SystemExit: no GPU"),
    "os_exit": (
        "import os\nos._exit(3)\n",
        "importing bad_os_exit:factory ended the process that did it: the warm process is gone: exit code 3",
    ),
    "segfault": (
        "import ctypes, subprocess\n"
        f"subprocess.Popen(['sleep', '{NAP}'])\n"
        "from badbatch.harness.faults.core_dumps import switch_off\n"
        "switch_off()\n"
        "ctypes.string_at(0)\n",
        "importing bad_segfault:factory ended the process that did it: the warm process is gone: "
        "signal 11 (Segmentation fault)",
    ),
    "raises_with_a_daemon": (
        f"import subprocess\nsubprocess.Popen(['sleep', '{NAP}'], start_new_session=True)\nraise ValueError('no\\n use')\n",
        "bad_raises_with_a_daemon cannot be imported: ValueError: no use",
    ),
    "interrupt": (
        "raise KeyboardInterrupt\n",
        "importing bad_interrupt:factory ended the process that did it: the warm process is gone: "
        "signal 2 (Interrupt): KeyboardInterrupt",
    ),
    "closes_descriptors": (
        "import os\nos.closerange(3, 4096)\ndef factory(job): return []\n",
        "importing bad_closes_descriptors:factory ended the process that did it: the warm process is gone: exit code ",
    ),
    "signature": (
        "def factory(job, root): return []\n",
        "bad_signature:factory takes job, root: a factory takes one argument",
    ),
}


@pytest.fixture(scope="module")
def refusals(supervisor: Supervisor, temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the supervisor says to each of the bad modules; several are imported at once."""
    standing = set(descendants())
    folder = tmp_path_factory.mktemp("bad")

    def refuse(name: str) -> str:
        (folder / f"bad_{name}.py").write_text(BAD_MODULES[name][0], encoding="utf-8")
        try:
            Supervisor(f"bad_{name}:factory", folder).close()
        except LoaderError as error:
            return str(error)
        return "it was not refused"

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        found = dict(zip(BAD_MODULES, pool.map(refuse, BAD_MODULES)))
    wait_until(lambda: set(descendants()) <= standing, "all processes have gone")
    return found


@pytest.mark.parametrize("name", BAD_MODULES)
def test_a_module_that_is_no_loader_is_refused_in_one_line(refusals: dict[str, str], name: str) -> None:
    """However the import ends, one line says what went wrong, and no process is left."""
    assert refusals[name].startswith(BAD_MODULES[name][1])
    assert "\n" not in refusals[name]


def test_a_daemon_of_a_failed_import_is_gone(refusals: dict[str, str]) -> None:
    """What a module started before its import failed has ended."""
    assert refusals
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", NAP]]


def test_a_folder_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    """The loader's folder is looked for before anything is started."""
    with pytest.raises(
        LoaderError, match=r"^there is no folder .*/nowhere from which rogue_loaders:well could be imported$"
    ):
        Supervisor(LOADER, tmp_path / "nowhere")


def test_relative_entries_of_the_path_lead_where_they_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that is importable by PYTHONPATH=src for its user is importable in a trial."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "by_path.py").write_text("def factory(job): return [{'id': [0]}]\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "src")
    with Supervisor("by_path:factory", "elsewhere") as own:
        assert "fork" == own.isolation


# Interrupted, or killed, at any moment.


class Program:
    """The supervising program, known by a mark in its environment that all its descendants inherit."""

    def __init__(self, folder: Path, loader: str = "rogue_loaders:torch_loader", then: str = "wait") -> None:
        self._mark = f"BADBATCH_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        (folder / "flag").unlink(missing_ok=True)
        self.flag = folder / "flag"
        self.process = subprocess.Popen(
            [sys.executable, str(ROGUES / "supervising.py"), loader, str(folder), then],
            env={**os.environ, name: value, "ROGUE_FLAG": str(self.flag)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def hear(self, word: str) -> None:
        """Wait until it says this."""
        assert self.process.stdout is not None
        assert word == self.process.stdout.readline().strip()

    def family(self) -> list[int]:
        """All living processes that carry the mark."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and self._mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(int(name))
            except OSError:  # it has just ended, or is not ours
                continue
        return [pid for pid in found if state(pid) not in (None, psutil.STATUS_ZOMBIE)]

    def end(self) -> None:
        """Whatever a test has found, leave nothing."""
        for pid in self.family():
            os.kill(pid, signal.SIGKILL)
        self.process.wait(SOON_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def slowness() -> float:
    """How many times longer than on an idle machine a process takes to start here and now; at least 1."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)
    return max(1.0, (time.monotonic() - began) / 0.05)


Launch = Callable[..., Program]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts the supervising program."""
    started: list[Program] = []

    def one(**settings: Any) -> Program:
        started.append(Program(tmp_path, **settings))
        return started[-1]

    yield one
    for program in started:
        program.end()


def reach(moment: str, launch: Launch) -> Program:
    """Bring the supervising program to a moment."""
    if moment == "while torch is imported":
        program = launch()
        program.hear("starting")
        wait_until(lambda: len(program.family()) > 1, "the warm process has started")
    elif moment == "while the loader is imported":
        program = launch(loader="slow_to_import:factory")
        program.hear("starting")
        wait_until(program.flag.exists, "the import has begun")
    elif moment == "while trials hang":
        program = launch()
        program.hear("starting")
        program.hear("hung")
    else:
        program = launch(then="close")
        program.hear("starting")
        program.hear("hung")
    return program


@pytest.mark.parametrize(
    "moment", ["while torch is imported", "while the loader is imported", "while trials hang", "while it ends them"]
)
def test_an_interrupt_ends_all_within_two_seconds(launch: Launch, moment: str) -> None:
    """Ctrl-C at any moment: after two seconds no process of it is left, the program itself included."""
    program = reach(moment, launch)
    allowed = slowness()
    os.kill(program.process.pid, signal.SIGINT)
    began = time.monotonic()
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone")
    took = time.monotonic() - began
    assert took < 2.0 * max(allowed, slowness())


def test_an_impatient_second_interrupt_leaves_nothing_either(launch: Launch) -> None:
    """Ctrl-C while the first one is obeyed: what was begun is ended without the program."""
    program = reach("while trials hang", launch)
    os.kill(program.process.pid, signal.SIGINT)
    time.sleep(0.05)
    os.kill(program.process.pid, signal.SIGINT)
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone", 6.0 * slowness())


@pytest.mark.parametrize("moment", ["while torch is imported", "while the loader is imported", "while trials hang"])
def test_nothing_outlives_a_supervisor_that_is_killed(launch: Launch, moment: str) -> None:
    """kill -9 of the program at any moment: a few seconds later all that it started has ended by itself."""
    program = reach(moment, launch)
    os.kill(program.process.pid, signal.SIGKILL)
    program.process.wait(SOON_S)
    wait_until(lambda: not program.family(), "all have gone", 5.0 * slowness())
