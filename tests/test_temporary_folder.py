"""The temporary folder of a trial has a short path, which only this user can enter, and which ends with the trial."""

from __future__ import annotations

import os
import socket
import stat
import time
from pathlib import Path

import psutil
import pytest
import trials
from badbatch.harness.processes import temporary_folder as module
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.processes.temporary_folder import (
    about_long_paths,
    make_temporary_folder,
    remove_temporary_folder,
    temporary_folder,
)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """The folder of a trial, with a path that is too long for any socket."""
    folder = tmp_path / ("deep-" * 20) / "00001-clean"
    folder.mkdir(parents=True)
    return folder


def test_a_name_of_80_bytes_fits(trial: Path) -> None:
    """A socket with such a name can be bound, and lies in the folder of the trial."""
    make_temporary_folder(trial)
    path = temporary_folder(trial)
    assert len(os.fsencode(path)) <= 26
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path / ("n" * 80)))
    assert (trial / "tmp" / ("n" * 80)).is_socket()
    remove_temporary_folder(trial)


def test_only_this_user_can_enter_it(trial: Path) -> None:
    """The folder that holds the link has a random name, and is closed to others."""
    make_temporary_folder(trial)
    private = temporary_folder(trial).parent
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    remove_temporary_folder(trial)
    assert not private.exists()
    assert list(trial.iterdir()) == []


def test_every_process_of_a_trial_finds_the_same(trial: Path) -> None:
    """It is found by the trial's folder alone."""
    make_temporary_folder(trial)
    assert temporary_folder(trial) == temporary_folder(trial)
    (temporary_folder(trial) / "file").touch()
    assert (trial / "tmp" / "file").exists()
    remove_temporary_folder(trial)


def test_a_link_to_another_place_is_not_used(trial: Path, tmp_path: Path) -> None:
    """The folder of a trial may be a copy of another one: its link then leads elsewhere."""
    make_temporary_folder(trial)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "tmp").mkdir()
    (copy / "tmp.short").symlink_to(os.readlink(trial / "tmp.short"))
    assert temporary_folder(copy) == copy / "tmp"
    remove_temporary_folder(copy)
    assert temporary_folder(trial) != trial / "tmp"
    remove_temporary_folder(trial)


def test_where_nothing_can_be_made_the_report_says_so(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the trial is used then, and what may fail because of it is said in one line."""
    assert about_long_paths() == ""
    monkeypatch.setattr(module, "_PLACES", ("/nowhere",))
    make_temporary_folder(trial)
    assert temporary_folder(trial) == trial / "tmp"
    assert "/nowhere" in about_long_paths() and "AF_UNIX" in about_long_paths()
    remove_temporary_folder(trial)
    assert list(trial.iterdir()) == []


def test_nothing_is_left_when_all_processes_are_killed(tmp_path: Path) -> None:
    """Neither the process of a trial nor the one that forks trials can remove the short path then."""
    loader = "fixtures.loaders.forkless:lines"  # stalls in a fork
    folder = tmp_path / ("deep-" * 20)
    with Supervisor(loader, trials.ROOT, "fork") as supervisor:
        supervisor.start(trials.question(loader, "clean", source="jsonl"), folder)
        deadline = time.monotonic() + 30
        while not list(folder.glob("events-*.bin")) and time.monotonic() < deadline:
            time.sleep(0.01)
        private = Path(os.readlink(folder / "tmp.short"))
        assert private.is_dir()
        assert supervisor._process is not None
        zygote = psutil.Process(supervisor._process.pid)
        for process in [zygote, *zygote.children(recursive=True)]:
            process.kill()
    assert not private.exists()
