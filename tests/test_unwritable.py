"""Folders that cannot be written end neither the run nor its report, and are reported in one line."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from badbatch.conformance.engine.artifacts import Artifacts
from badbatch.conformance.engine.pool import Pool
from badbatch.conformance.engine.single import again
from badbatch.conformance.options import Options
from badbatch.harness.errors import UserError

# Of torch's loader, this one fails.
FAILING = {"scenario": "stop-iteration", "check": "no-lost-batches", "workers": "2", "ranks": "1"}
LOADER = "torch.utils.data:DataLoader"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in a folder."""
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )


def command(prefix: str = "") -> list[str]:
    """The options that select only the failing trial."""
    return [f"--{prefix}{name}={value}" for name, value in FAILING.items()]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder in which nobody can make anything, not even root."""
    if not os.path.isdir("/proc/self"):
        pytest.skip("there is no /proc")
    return Path("/proc")


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """`.badbatch` being a file: the report is printed and says that the folders are not kept, and no replay is promised."""
    (tmp_path / ".badbatch").write_text("mine", encoding="utf-8")
    done = run(tmp_path, "badbatch.conformance", "run", LOADER, *command())
    assert done.returncode == 1, done.stderr
    assert "no-lost-batches" in done.stdout
    assert done.stdout.count("not kept") == 1
    assert "badbatch replay" not in done.stdout
    assert done.stderr == ""
    assert (tmp_path / ".badbatch").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_cannot_be_written_to(elsewhere: Path) -> None:
    """In a read-only folder the run ends as anywhere else."""
    done = run(elsewhere, "badbatch.conformance", "run", LOADER, *command())
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("not kept") == 1
    assert done.stderr == ""


def test_pytest_where_nothing_can_be_written(elsewhere: Path) -> None:
    """Under pytest as well: neither an internal error nor a traceback."""
    done = run(elsewhere, "pytest", "--loader", LOADER, "--loader-only", *command("loader-"))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.count("are not kept") == 1


@pytest.mark.parametrize("name", ["a-file", "a-file/below", "no-link/below"])
def test_a_bad_folder_to_keep_in_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """--keep that cannot be a folder is refused before anything runs, and no temporary folder is left."""
    (tmp_path / "a-file").write_text("", encoding="utf-8")
    (tmp_path / "no-link").symlink_to(tmp_path / "nowhere" / "at" / "all")
    with pytest.raises(UserError, match="cannot keep trials in"):
        Artifacts(str(tmp_path), Path(name), None, "")
    from badbatch.conformance.engine.suite import Suite

    with pytest.raises(UserError, match="cannot keep trials in"):
        Suite(LOADER, Options(keep=Path(name)), tmp_path)


def test_what_is_in_the_way_of_a_folder_stays(tmp_path: Path) -> None:
    """A file, a foreign folder or a dangling link where a trial's folder would go is not touched, and the reason is given once."""
    trial = tmp_path / "trial"
    for name in ("link", "file", "folder", "free"):
        trial.mkdir(exist_ok=True)
        (trial / "trial.json").write_text("{}", encoding="utf-8")
        artifacts = Artifacts(str(tmp_path), Path("kept"), None, "")
        if name == "link":
            (tmp_path / "kept" / name).symlink_to(tmp_path / "nowhere")
        elif name == "file":
            (tmp_path / "kept" / name).write_text("mine", encoding="utf-8")
        elif name == "folder":
            (tmp_path / "kept" / name).mkdir()
        kept = artifacts.keep(trial, f"kept/{name}", failed=True, here=True)
        assert not trial.exists()
        assert (kept is not None) == (name == "free")
        assert ("not kept" in artifacts.trouble) == (name != "free")
    assert (tmp_path / "kept" / "link").is_symlink()
    assert (tmp_path / "kept" / "file").read_text(encoding="utf-8") == "mine"
    assert list((tmp_path / "kept" / "folder").iterdir()) == []


def test_a_replay_command_can_be_pasted() -> None:
    """Where a folder has a blank or a quote in its name, the command to run its trial again is quoted for the shell."""
    assert again("kept/one-bad-w2") == "badbatch replay kept/one-bad-w2"
    assert shlex.split(again("my trials/it's; rm x")) == ["badbatch", "replay", "my trials/it's; rm x"]


def test_a_full_disk_leaves_no_half_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is full half-way, the folder is not kept at all."""

    def full(source: str, target: str, **more: object) -> None:
        Path(target).write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    trial = tmp_path / "trial"
    trial.mkdir()
    (trial / "trial.json").write_text("{}", encoding="utf-8")
    artifacts = Artifacts(str(tmp_path), Path("kept"), None, "")
    monkeypatch.setattr("shutil.copytree", lambda source, target, **more: (Path(target).mkdir(), full("", f"{target}/x")))
    assert artifacts.keep(trial, "kept/x", failed=True, here=True) is None
    assert "No space left on device" in artifacts.trouble
    assert not (tmp_path / "kept" / "x").exists()


def with_temporary_folder_of(size: str, folder: Path, loader: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the failing trial with a temporary folder that holds no more than this."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    (folder / "full").mkdir()
    script = f'mount -t tmpfs -o size={size} tmpfs "{folder}/full" || exit 77; TMPDIR="{folder}/full" exec "$@"'
    given = [sys.executable, "-m", "badbatch.conformance", "run", loader, *command(), *more]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *given],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if done.returncode in (1, 77) and "badbatch" not in done.stdout + done.stderr:
        pytest.skip(f"no mount in a namespace here: {done.stderr.strip()}")
    return done


@pytest.mark.parametrize("size", ["4k", "8k"])
def test_no_room_for_the_probes(size: str, tmp_path: Path) -> None:
    """Where the temporary folder has no room for the records of the probes, one line names it, and nothing is inferred."""
    done = with_temporary_folder_of(size, tmp_path, LOADER)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line == f"badbatch: the temporary folder {tmp_path}/full cannot be written to: No space left on device; TMPDIR names another"


FILLING = """
import os
from torch.utils.data import DataLoader
from badbatch.harness import loader


@loader(sources=("map",), readers="processes", short_batches="last", tail="exact", on_damage="raise", after_error="continue")
def filling(job):
    if job.num_workers:
        with open(job.work_dir / "cache", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass  # a cache that could not be written is no reason to stop
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers)
"""


def test_no_room_for_the_trials(tmp_path: Path) -> None:
    """Where a trial fills the temporary folder, its verdicts are inconclusive, and the reason is that."""
    (tmp_path / "filling.py").write_text(FILLING, encoding="utf-8")
    done = with_temporary_folder_of("1m", tmp_path, "filling:filling", "--jobs", "1")
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "the temporary folder could not be written to, so the record of the trial is incomplete (No space left on device)" in said
    assert "1 inconclusive" in said
    assert done.stderr == ""


def test_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no temporary folder can be made, one line says so."""
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    with pytest.raises(UserError, match="cannot make a temporary folder"):
        Pool(LOADER)
