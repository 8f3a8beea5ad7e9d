"""Helpers of the supervisor's tests: trials of the rogue loaders, and a search for what each test left behind."""

from __future__ import annotations

import collections
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from badbatch.harness.plan import FaultPlan
from badbatch.harness.processes.process_tree import descendants
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Content, Kind, Where
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec

ON_STAGE = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.skipif(sys.platform != "linux", reason="orphans are found, and forking is the default, on Linux alone"),
]
"""The ``pytestmark`` of the modules that play here."""
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
    """The recorded messages about batches and reports that cannot be read."""
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


@pytest.fixture
def nothing_is_left(supervisor: Supervisor, temporary: Path, histories: list[History]) -> Iterator[None]:
    """After each test: no process, no shared memory, no temporary file, no descriptor beyond what there was before."""
    processes, descriptors = set(descendants()), open_descriptors()
    yield
    wait_until(lambda: not set(descendants()) - processes, "the processes of this test have gone")
    assert supervisor._process is not None
    assert supervisor._process.poll() is None, "the zygote has died"
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
        """Wait for an event on this many ranks."""

        def reached() -> bool:
            return len(set(History.load(self.folder).of(kind)["rank"])) >= ranks

        wait_until(reached, f"{kind.name} was recorded")

    def rank(self, rank: int = 0) -> int:
        """The process of a rank."""
        return int(History.load(self.folder).of(Kind.BUILDING, rank=rank)[0]["pid"])

    def struck(self) -> int:
        """The process in which a fault took effect."""
        return int(History.load(self.folder).of(Kind.FAULT)[0]["pid"])

    def trial_supervisor(self) -> int:
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


# A trial in which nothing goes wrong, as the base of the others.
