"""No fault can hang, crash or slow the harness. Real processes, through the one boundary that starts them."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import signal
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest
from badbatch.harness.errors import HarnessError, LoaderError
from badbatch.harness.faults.hang import Hang
from badbatch.harness.processes import supervisor as supervisor_module
from badbatch.harness.processes.process_tree import descendants, state
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Kind, Where
from badbatch.harness.trial.history import History
from staging import (
    EVERYTHING,
    LOADER,
    ON_STAGE,
    ROGUES,
    Run,
    Start,
    Trial,
    delivered,
    errors,
    spec,
    wait_until,
)

pytestmark = ON_STAGE


@pytest.mark.parametrize(("workers", "ranks"), [(0, 1), (2, 1), (0, 2)])
def test_a_trial_without_a_fault_runs_to_its_end(run: Run, workers: int, ranks: int) -> None:
    """Every sample arrives, every rank finishes, nothing is left."""
    history = run("torch_loader", workers=workers, ranks=ranks)
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert ("ended", (0,) * ranks, ()) == (str(history.ended), history.ended.ranks, history.ended.leftovers)


def test_many_trials_run_at_once(supervisor: Supervisor, tmp_path: Path, histories: list[History]) -> None:
    """Eight trials that each wait two seconds overlap in time, and each ends with its own number and folder."""
    asked = spec(plan={5: Hang(release_after_s=2.0)})
    numbers = {supervisor.start(asked, tmp_path / str(n)): tmp_path / str(n) for n in range(8)}
    assert numbers == supervisor.folders()
    ended: dict[int, Path] = {}
    wait_until(lambda: ended.update(supervisor.finished(1.0)) or len(ended) == 8, "all ended")
    assert numbers == ended
    assert 0 == supervisor.running
    histories += [History.load(folder) for folder in ended.values()]
    assert all(history.complete and delivered(history) == EVERYTHING for history in histories)
    spans = [(history.events["time"].min(), history.events["time"].max()) for history in histories]
    assert sum(begin < end for begin, _ in spans for _, end in spans) > len(spans) ** 2 / 2 + len(spans) / 2  # they overlap


def test_a_relative_folder_is_that_of_the_caller(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial runs in the loader's folder, but its record is in the requested folder."""
    monkeypatch.chdir(tmp_path)
    assert supervisor.run(spec(), Path("there")).complete
    assert (tmp_path / "there" / "ended.json").exists()


# Killed from outside.


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_rank_ends_its_trial(start: Start, workers: int) -> None:
    """kill -9 of the consumer is reported as that, and its workers end with it, also a hung one."""
    trial = start(plan={5: Hang()}, workers=workers)
    trial.until(Kind.FAULT)
    os.kill(trial.rank(), signal.SIGKILL)
    history = trial.history()
    assert (None, (-9,)) == (history.ended.cut, history.ended.ranks)
    assert "killed by signal 9" == str(history.ended)
    assert not history.complete
    assert [5] == history.struck.tolist()


def test_one_killed_rank_of_two_does_not_keep_the_other(start: Start) -> None:
    """The other rank runs to its end, or is ended; the trial shows which of them died."""
    trial = start(plan={5: Hang(), 4: Hang()}, ranks=2, deadline_s=5.0)
    trial.until(Kind.FAULT, ranks=2)
    os.kill(trial.rank(1), signal.SIGKILL)
    history = trial.history()
    assert (None, -9) == history.ended.ranks
    assert history.ended.cut in ("stalled", "out of time")


def test_a_killed_worker_does_not_hang_the_trial(start: Start) -> None:
    """kill -9 of a worker is for the loader to handle: whatever it does, the trial ends in time and whole."""
    trial = start(plan={5: Hang()}, workers=2, deadline_s=5.0)
    trial.until(Kind.FAULT)
    assert trial.struck() != trial.rank()
    os.kill(trial.struck(), signal.SIGKILL)
    history = trial.history()
    assert history.ended.seconds < 20
    assert len(history.of(Kind.RAISED)) or history.ended.cut


def test_a_killed_warden_loses_its_trial_and_nothing_else(start: Start, run: Run) -> None:
    """kill -9 of the trial supervisor is noticed at once, all that it watched is ended, and the next trial runs."""
    trial = start(plan={5: Hang()}, workers=2)
    trial.until(Kind.FAULT)
    os.kill(trial.trial_supervisor(), signal.SIGKILL)
    history = trial.history()
    assert ("lost", (None,)) == (history.ended.cut, history.ended.ranks)
    assert [5] == history.struck.tolist()
    assert run().complete


def test_a_warden_that_its_loader_kills_is_lost_too(run: Run) -> None:
    """A loader that kills its parent, with a daemon started before, gains nothing."""
    history = run("kills_its_supervisor")
    assert "lost" == history.ended.cut
    assert EVERYTHING[:4] == delivered(history)


def test_a_killed_warden_takes_no_other_trial_along(
    supervisor: Supervisor, tmp_path: Path, histories: list[History]
) -> None:
    """Only what belongs to a trial supervisor is removed after it: a trial beside it runs to its end."""
    killed = Trial(supervisor, tmp_path / "killed", spec("torch_loader", {5: Hang()}, workers=2), histories)
    beside = Trial(
        supervisor, tmp_path / "beside", spec("torch_loader", {5: Hang(release_after_s=3.0)}, workers=2), histories
    )
    killed.until(Kind.FAULT)
    beside.until(Kind.FAULT)
    os.kill(killed.trial_supervisor(), signal.SIGKILL)
    ended: dict[Path, int] = {}
    wait_until(
        lambda: ended.update({folder: number for number, folder in supervisor.finished(1.0)}) or len(ended) == 2,
        "both ended",
    )
    assert "lost" == History.load(killed.folder).ended.cut
    assert History.load(beside.folder).complete


def test_a_stopped_warden_is_killed_in_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial supervisor that its loader stops is asked to stop, then killed: the supervisor does not wait longer."""
    monkeypatch.setattr(supervisor_module, "_PATIENCE_S", 1.0)
    history = run("stops_its_supervisor", deadline_s=1.0)
    assert "lost" == history.ended.cut


def test_a_killed_zygote_is_reported_and_its_trials_are_lost(tmp_path: Path) -> None:
    """kill -9 of the process that forks the trials is an error of the harness, and leaves nothing."""
    with Supervisor(LOADER, ROGUES) as own:
        trial = Trial(own, tmp_path / "trial", spec("torch_loader", {5: Hang()}, workers=2), [])
        trial.until(Kind.FAULT)
        family = [trial.rank(), trial.struck(), trial.trial_supervisor()]
        assert own._process is not None
        os.kill(own._process.pid, signal.SIGKILL)
        with pytest.raises(HarnessError, match=r"^the zygote has died: signal 9 \(Killed\)$"):
            trial.history()
        with pytest.raises(HarnessError, match=r"^the zygote has died: "):
            own.start(spec(), tmp_path / "next")
    wait_until(lambda: not any(state(pid) for pid in family), "its trials have ended")


def test_a_warm_process_that_answers_no_more_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process that forks the trials is stopped, the supervisor orders it twice to end the trial, then ends it."""
    monkeypatch.setattr(supervisor_module, "_PATIENCE_S", 0.5)
    with Supervisor(LOADER, ROGUES) as own:
        assert own._process is not None
        os.kill(own._process.pid, signal.SIGSTOP)
        orders: list[str] = []
        send = own._send
        monkeypatch.setattr(own, "_send", lambda message: (orders.append(*list(message)[:1]), send(message)))
        with pytest.raises(HarnessError, match=r"^the zygote does not answer$"):
            own.run(spec(deadline_s=0.5), tmp_path / "trial")
        assert ["run", "stop", "kill"] == orders
        own.close()
        assert own._process.returncode == -signal.SIGKILL


def test_a_supervisor_outlives_the_thread_that_made_it(tmp_path: Path) -> None:
    """The zygote does not die with the thread in which it was started."""
    made: list[Supervisor] = []
    thread = threading.Thread(target=lambda: made.append(Supervisor(LOADER, ROGUES)))
    thread.start()
    thread.join()
    with made[0] as own:
        assert own.run(spec(), tmp_path / "trial").complete


# Rogues that end, and what is reported about them.


@pytest.mark.skipif(sys.platform != "linux", reason="native threads are listed in /proc")
def test_a_module_that_starts_native_threads_is_not_forked(tmp_path: Path) -> None:
    """A thread of a native runtime, of which Python knows nothing, is seen as well."""
    (tmp_path / "native.py").write_text(
        textwrap.dedent(
            """
            import ctypes

            libc = ctypes.CDLL(None)
            thread = ctypes.c_ulong()
            assert libc.pthread_create(ctypes.byref(thread), None, libc.pause, None) == 0
            assert libc.pthread_setname_np(thread, b"runtime") == 0

            def factory(job):
                return [{"id": [0, 1]}]
            """
        ),
        encoding="utf-8",
    )
    with Supervisor("native:factory", tmp_path) as own:
        assert ("spawn", "importing the module started a native thread (runtime)") == (own.isolation, own.isolation_why)
    with Supervisor("native:factory", tmp_path, isolation="fork") as own:
        assert "fork" == own.isolation


def test_a_module_that_starts_threads_is_not_forked(tmp_path: Path) -> None:
    """If forking is unsafe a fresh interpreter is used, with the reason; a user who requests forking gets it."""
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


# Modules that cannot be tested. Errors in names and attributes are in test_calling.py.

NAP = f"1000.{os.getpid()}"  # by which a sleeping process is known as ours

BAD_MODULES: dict[str, tuple[str, str]] = {
    "import": (
        "import nowhere_at_all\n",
        "bad_import cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'",
    ),
    "sys_exit": ("import sys\nsys.exit('no GPU')\n", "bad_sys_exit cannot be imported: SystemExit: no GPU"),
    "os_exit": (
        "import os\nos._exit(3)\n",
        "importing bad_os_exit:factory ended the process that did it: the zygote has died: exit code 3",
    ),
    "segfault": (
        "import ctypes, subprocess\n"
        f"subprocess.Popen(['sleep', '{NAP}'])\n"
        "from badbatch.harness.faults.core_dumps import switch_off\n"
        "switch_off()\n"
        "ctypes.string_at(0)\n",
        "importing bad_segfault:factory ended the process that did it: the zygote has died: "
        "signal 11 (Segmentation fault)",
    ),
    "raises_with_a_daemon": (
        f"import subprocess\nsubprocess.Popen(['sleep', '{NAP}'], start_new_session=True)\nraise ValueError('no\\n use')\n",
        "bad_raises_with_a_daemon cannot be imported: ValueError: no use",
    ),
    "interrupt": (
        "raise KeyboardInterrupt\n",
        "importing bad_interrupt:factory ended the process that did it: the zygote has died: "
        "signal 2 (Interrupt): KeyboardInterrupt",
    ),
    "closes_descriptors": (
        "import os\nos.closerange(3, 4096)\ndef factory(job): return []\n",
        "importing bad_closes_descriptors:factory ended the process that did it: the zygote has died: exit code ",
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


def test_a_daemon_of_a_failed_import_is_ended(refusals: dict[str, str]) -> None:
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
