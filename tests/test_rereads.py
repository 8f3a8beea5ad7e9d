"""A trial is cut as soon as its record proves that it will not end."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import psutil
import pytest
import trials
from badbatch.harness.processes.process_tree import usage
from badbatch.harness.processes.rereads import MOST_PROCESSES, MOST_READS, Rereads
from badbatch.harness.trial.event_log import HEADER, RECORD, Kind, Recorder, read_log
from badbatch.harness.trial.spec import Topology


@pytest.fixture
def record(tmp_path: Path) -> Recorder:
    """The record of a trial."""
    return Recorder(tmp_path)


@pytest.fixture
def rereads(tmp_path: Path) -> Rereads:
    """What follows it."""
    return Rereads(tmp_path / "events-0.bin")


def read(record: Recorder, sample: int) -> None:
    """A read that fails."""
    record(Kind.READ, sample)
    record(Kind.FAULT, sample)
    record(Kind.READ_DONE, sample, flags=1)


def test_a_sample_that_is_read_without_end_is_a_proof(record: Recorder, rereads: Rereads) -> None:
    """After this many reads; the first few of them are progress, and what nobody recorded is not."""
    assert not rereads.look()
    record(Kind.ASK)
    progress = []
    for _ in range(MOST_READS - 1):
        read(record, 5)
        progress.append(rereads.look())
    assert progress[:3] == [True, True, True]
    assert not any(progress[3:])
    assert rereads.endless() == ""
    read(record, 5)
    rereads.look()
    assert rereads.endless() == f"sample 5 was read {MOST_READS} times, and the consumer got nothing"


def test_what_the_consumer_gets_resets_the_count(record: Recorder, rereads: Rereads) -> None:
    """Many reads of a sample over many batches are none too many; other samples are progress."""
    for number in range(3 * MOST_READS):
        read(record, 5)
        if number % (MOST_READS // 2) == 0:
            record(Kind.GOT)
        rereads.look()
        assert rereads.endless() == ""
    for sample in range(2 * MOST_READS):
        record(Kind.READ, sample)
    assert rereads.look()
    assert rereads.endless() == ""


def test_one_process_after_the_other_is_a_proof(tmp_path: Path, record: Recorder, rereads: Rereads) -> None:
    """A loader that starts a new worker for each that dies of a sample is known by fewer reads."""
    for _ in range(MOST_PROCESSES):
        record(Kind.READ, 5)
    record.close()
    path = tmp_path / "events-0.bin"
    events = read_log(path)
    events["pid"] = np.arange(len(events)) + 100
    path.write_bytes(path.read_bytes()[: HEADER.size] + events.tobytes())
    rereads.look()
    assert rereads.endless() == f"sample 5 was read by {MOST_PROCESSES} processes, one after the other, and the consumer got nothing"


def test_a_record_that_grows_faster_than_it_is_read_is_followed_at_its_end(
    record: Recorder, rereads: Rereads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the last part of a huge record is read."""
    monkeypatch.setattr("badbatch.harness.processes.following.AT_ONCE", 10 * RECORD.itemsize)
    for sample in range(100):
        record(Kind.READ, sample)
    rereads.look()
    for _ in range(MOST_READS + 10):
        record(Kind.READ, 99)
        rereads.look()
    assert rereads.endless().startswith("sample 99 was read ")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["liars_workers:retries_without_end", "liars_errno:stale_file_opened_again"])
def test_a_loader_that_tries_again_without_end_is_cut_before_its_deadline(name: str, tmp_path: Path) -> None:
    """It fails finite-epoch, with the proof in the message, long before a deadline of ten minutes."""
    scenario = "one-bad" if "retries" in name else "stale-handle"
    asked = trials.question(f"fixtures.loaders.{name}", scenario, Topology(2, 1), deadline_s=600.0)
    [judged] = trials.put([asked], tmp_path).values()
    assert judged.history.ended.cut == "stalled"
    assert "times, and the consumer got nothing" in judged.blamed["finite-epoch"].happened


def test_usage_is_what_psutil_says() -> None:
    """Processor seconds and state of a process, without psutil's cost; nothing for one that has ended."""
    seconds, runs = usage(os.getpid())
    times = psutil.Process().cpu_times()
    assert runs
    assert abs(times.user + times.system - seconds) < 1
    assert usage(1 << 22) == (0.0, False)
