"""What a loader finds on each of several ranks, and on a single one: the environment, the port and the process group."""

from __future__ import annotations

from pathlib import Path

import pytest
from badbatch.harness.contract.once import make_once
from badbatch.harness.processes.ports import Ports
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Kind, Where
from badbatch.harness.trial.history import History
from staging import EVERYTHING, ON_STAGE, Run, delivered, errors, spec, wait_until

pytestmark = ON_STAGE


@pytest.mark.parametrize(
    "loader", ["finds_a_group", "makes_one_from_the_environment", "makes_one_at_an_address", "makes_one_and_destroys_it"]
)
@pytest.mark.parametrize("lockstep", [False, True])
def test_a_group_is_ready_and_may_be_replaced(loader: str, lockstep: bool, run: Run) -> None:
    """A loader finds a default group of all ranks, or makes its own; in both cases the steps of the trial are in lock step."""
    history = run(f"group_loaders:{loader}", ranks=2, lockstep=lockstep)
    assert errors(history, Where.FACTORY) == []
    assert errors(history, Where.NEXT) == []
    assert delivered(history) == EVERYTHING
    assert history.complete
    assert len(history.of(Kind.WAITED)) == 0


def test_a_second_group_is_refused_as_ever(run: Run) -> None:
    """Only the trial's own group is replaced: a loader that makes two gets torch's error."""
    history = run("group_loaders:makes_two", ranks=2)
    assert all("default process group twice" in error for error in errors(history, Where.FACTORY))
    assert len(errors(history, Where.FACTORY)) == 2


@pytest.mark.parametrize("loader", ["makes_one_from_the_environment", "binds_the_port"])
def test_trials_at_the_same_time_have_ports_of_their_own(
    loader: str, supervisor: Supervisor, tmp_path: Path, histories: list[History]
) -> None:
    """Several trials whose loaders bind the port run side by side."""
    asked = spec(f"group_loaders:{loader}", ranks=2)
    for number in range(4):
        supervisor.start(asked, tmp_path / str(number))
    ended: dict[int, Path] = {}
    wait_until(lambda: ended.update(supervisor.finished(1.0)) or len(ended) == 4, "all ended")
    histories += [History.load(folder) for folder in ended.values()]
    assert [errors(history, Where.FACTORY) for history in histories] == [[]] * 4
    assert [delivered(history) for history in histories] == [EVERYTHING] * 4


def test_one_rank_has_no_variables_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial of one rank has none of the variables of torchrun, also where badbatch itself was started by it."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "1")
    asked = spec("group_loaders:prints_its_environment")
    with Supervisor(asked.loader, asked.directory) as inheriting:
        names = inheriting.run(asked, tmp_path / "trial").output.split()
    assert "TMPDIR" in names
    assert [name for name in names if "RANK" in name or "WORLD_SIZE" in name or name.startswith(("MASTER", "TORCHE"))] == []


def test_no_port_is_given_twice() -> None:
    """Ports under way differ; one that was given back may come again."""
    ports = Ports()
    taken = [ports.take() for _ in range(50)]
    assert len(set(taken)) == 50
    ports.give_back(taken[0])
    assert ports.take() not in taken[1:]


def test_what_ranks_share_is_made_once(run: Run) -> None:
    """The ranks of a trial share a folder, in which one of them makes what both need; it goes with the trial."""
    history = run("group_loaders:makes_a_file_once", ranks=2)
    assert errors(history, Where.FACTORY) == []
    assert delivered(history) == EVERYTHING
    assert not (Path(str(history.folder)) / "work").exists()


def test_what_was_half_made_is_made_again(tmp_path: Path) -> None:
    """A call that raises leaves nothing, and the next one makes it; then nobody is called again."""

    def half(path: Path) -> None:
        path.mkdir()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        make_once(tmp_path / "a" / "set", half)
    assert make_once(tmp_path / "a" / "set", Path.mkdir).is_dir()
    assert make_once(tmp_path / "a" / "set", half).is_dir()
