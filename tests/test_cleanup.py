"""What is removed after a trial is what the trial made, and nothing of anybody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from badbatch.harness.processes.cleanup import clear_away, standing_segments
from badbatch.harness.processes.semaphores import semaphore_prefix
from badbatch.harness.processes.shared_memory import SHARED_MEMORY
from badbatch.harness.trial.event_log import HEADER, Kind, Recorder, read_log

linux = pytest.mark.skipif(sys.platform != "linux", reason="segments are files on Linux alone")
PID = 4_000_000 + os.getpid() % 100_000  # of the trial; near the largest that Linux gives, so that no other program has it


@pytest.fixture
def segment() -> Iterator[Path]:
    """Where a segment with the pid of a trial's process in its name would be."""
    path = Path(SHARED_MEMORY) / f"torch_{PID}_{os.getpid()}_0"
    yield path
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


@linux
def test_a_segment_of_the_trial_is_removed_and_reported(segment: Path, tmp_path: Path) -> None:
    """It was made after the trial began, by this user, and its name contains the pid of a process of the trial."""
    standing = standing_segments()
    segment.write_bytes(b"x")
    assert clear_away(tmp_path, {PID}, standing) == [{"what": "shared memory", "name": "torch_N_N_N"}]
    assert not segment.exists()


@linux
def test_a_segment_from_before_the_trial_stays(segment: Path, tmp_path: Path) -> None:
    """Another program made it: the pid in its name was used again, or is one of another pid namespace."""
    segment.write_bytes(b"x")
    standing = standing_segments()
    assert clear_away(tmp_path, {PID}, standing) == []
    assert segment.exists()


@linux
def test_a_segment_of_another_user_stays(segment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it was made while the trial ran and its name contains the pid of one of its processes."""
    standing = standing_segments()
    segment.write_bytes(b"x")
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert clear_away(tmp_path, {PID}, standing) == []
    assert segment.exists()


@linux
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_segment_stays(kind: str, segment: Path, tmp_path: Path) -> None:
    """A link or a folder of that name is nothing that a process of the trial uses as shared memory."""
    standing = standing_segments()
    if kind == "link":
        segment.symlink_to(tmp_path / "elsewhere")
    else:
        segment.mkdir()
    assert clear_away(tmp_path, {PID}, standing) == []
    assert os.path.lexists(segment)


@linux
def test_semaphores_of_the_trial_are_removed(tmp_path: Path) -> None:
    """Their names contain the name of the trial's folder; those of another trial stay."""
    standing = standing_segments()
    paths = [Path(SHARED_MEMORY) / f"sem.{semaphore_prefix(folder)}-x" for folder in (tmp_path, tmp_path / "other")]
    try:
        for path in paths:
            path.write_bytes(b"x")
        assert clear_away(tmp_path, set(), standing) == []
        assert [path.exists() for path in paths] == [False, True]
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


@linux
def test_the_processes_of_a_trial_are_read_from_its_record(segment: Path, tmp_path: Path) -> None:
    """A process that has long ended is known by what it recorded, also where the last record was cut."""
    standing = standing_segments()
    record = Recorder(tmp_path)
    record(Kind.BUILDING)
    record.close()
    path = tmp_path / "events-0.bin"
    events = read_log(path)
    events["pid"] = PID
    path.write_bytes(path.read_bytes()[: HEADER.size] + events.tobytes() + b"torn")
    segment.write_bytes(b"x")
    assert len(clear_away(tmp_path, set(), standing)) == 1
    assert not segment.exists()
