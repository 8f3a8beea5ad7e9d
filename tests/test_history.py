"""A trial's folder as a value: whole, cut short, lost, damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from badbatch.harness.errors import UserError
from badbatch.harness.faults import Hang
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.event_log import Kind, Recorder
from badbatch.harness.trial.history import Ended, History
from badbatch.harness.trial.phases import plain
from badbatch.harness.trial.spec import Topology, TrialSpec

WHOLE = {"cut": None, "seconds": 1.5, "ranks": [0, 0], "leftovers": [], "evidence": []}


def folder_of(path: Path, *, ended: Any = WHOLE, finished: tuple[int, ...] = (0, 1)) -> Path:
    """A trial of two ranks: each asks once, gets samples 0 and 1, and finishes if named; sample 5 had its fault twice."""
    spec = TrialSpec("mod:attr", "/somewhere", "hung-read", "map", Topology(2, 2), FaultPlan({5: Hang()}), phases=plain(2))
    path.mkdir(exist_ok=True)
    spec.write(path / "trial.json")
    for rank in (1, 0):
        recorder = Recorder(path, rank)
        for epoch in range(2):
            recorder(Kind.EPOCH, epoch=epoch)
            recorder(Kind.FAULT, 5)
            recorder.many(Kind.ARRIVED, np.array([0, 1]), 0, 1, epoch)
        recorder(Kind.RAISED, aux=recorder.text(type="t", message=f"said by rank {rank}"), epoch=1)
        if rank in finished:
            recorder(Kind.FINISHED)
        recorder.close()
    if ended is not None:
        (path / "ended.json").write_text(ended if isinstance(ended, str) else json.dumps(ended), encoding="utf-8")
    return path


def test_a_whole_trial_is_loaded_whole(tmp_path: Path) -> None:
    """Question, events, texts and ending of a trial come from its folder, rank by rank."""
    history = History.load(folder_of(tmp_path))
    assert FaultPlan({5: Hang()}) == history.spec.plan
    assert [0] * 10 + [1] * 10 == history.events["rank"].tolist()
    assert ["said by rank 0", "said by rank 1"] == [history.text(event) for event in history.of(Kind.RAISED)]
    assert history.complete
    assert frozenset({0, 1}) == history.finished_ranks
    assert Ended(None, 1.5, (0, 0)) == history.ended
    assert "ended" == str(history.ended)
    assert str(tmp_path) == history.folder


def test_events_are_chosen_by_kind_epoch_and_rank(tmp_path: Path) -> None:
    """Each further condition narrows the choice, and the order stays."""
    history = History.load(folder_of(tmp_path))
    assert 4 == len(history.of(Kind.EPOCH))
    assert 12 == len(history.of(Kind.EPOCH, Kind.ARRIVED))
    assert [0, 1, 0, 1] == history.of(Kind.ARRIVED, epoch=1)["sample"].tolist()
    assert [0, 1] == history.of(Kind.ARRIVED, epoch=1, rank=1)["sample"].tolist()
    assert not len(history.of(Kind.CAPPED))


def test_a_sample_counts_once_however_often_its_fault_occurred(tmp_path: Path) -> None:
    """The struck samples are a set."""
    assert [5] == History.load(folder_of(tmp_path)).struck.tolist()


def test_an_event_without_a_text_says_nothing(tmp_path: Path) -> None:
    """Asking for a text that was never stored, or a field that it lacks, gives an empty one."""
    history = History.load(folder_of(tmp_path))
    assert "" == history.text(history.of(Kind.EPOCH)[0])
    assert "" == history.text(history.of(Kind.RAISED)[0], "traceback")


@pytest.mark.parametrize(
    ("ended", "finished", "says"),
    [
        ({**WHOLE, "cut": "stalled", "ranks": [None, 0]}, (0, 1), "stalled"),
        ({**WHOLE, "cut": "out of time", "ranks": [None, None]}, (), "out of time"),
        ({**WHOLE, "ranks": [0, -9]}, (0,), "rank 1: killed by signal 9"),
        ({**WHOLE, "ranks": [3, 0]}, (1,), "rank 0: exit code 3"),
    ],
)
def test_a_trial_that_did_not_run_to_its_end_is_not_complete(
    tmp_path: Path, ended: dict[str, Any], finished: tuple[int, ...], says: str
) -> None:
    """Cut short, or left by a rank: what is missing from its record proves nothing."""
    history = History.load(folder_of(tmp_path, ended=ended, finished=finished))
    assert not history.complete
    assert says == str(history.ended)


def test_an_exit_before_the_end_is_not_complete_even_with_code_zero(tmp_path: Path) -> None:
    """A rank that left by os._exit(0) did not finish, whatever its code says."""
    history = History.load(folder_of(tmp_path, finished=(0,)))
    assert "ended" == str(history.ended)
    assert not history.complete


def test_a_trial_whose_warden_died_is_lost(tmp_path: Path) -> None:
    """Without a record of its end, a trial counts as cut, and what was recorded is still there."""
    history = History.load(folder_of(tmp_path, ended=None))
    assert Ended("lost", 0.0, (None, None)) == history.ended
    assert not history.complete
    assert 20 == len(history.events)


def test_a_trial_that_recorded_nothing_can_be_loaded(tmp_path: Path) -> None:
    """A trial that was killed before its first record is an empty history."""
    TrialSpec("mod:attr", ".", "clean", "map", Topology(), FaultPlan()).write(tmp_path / "trial.json")
    (tmp_path / "events-0.bin").touch()
    history = History.load(tmp_path)
    assert not len(history.events)
    assert not history.texts
    assert "lost" == str(history.ended)


def test_only_the_end_of_what_was_printed_is_kept(tmp_path: Path) -> None:
    """Megabytes of output, in any bytes, become a few thousand characters: the last ones."""
    folder_of(tmp_path)
    (tmp_path / "output-0.txt").write_bytes(b"\xff\xfe" * 1_000_000 + b"the last line\n")
    (tmp_path / "stacks-1.txt").write_text("File somewhere, line 3", encoding="utf-8")
    history = History.load(tmp_path)
    assert history.output.endswith("the last line")
    assert len(history.output) <= 4000
    assert "File somewhere, line 3" == history.stacks


def test_a_large_record_is_not_read_into_memory(tmp_path: Path) -> None:
    """Beyond some size the events stay in the file, and are paged in where they are looked at."""
    folder_of(tmp_path)
    recorder = Recorder(tmp_path, 0)
    recorder.many(Kind.ARRIVED, np.arange(100_000), 0, 1, 0)
    recorder.close()
    TrialSpec("mod:attr", ".", "clean", "map", Topology(), FaultPlan()).write(tmp_path / "trial.json")
    history = History.load(tmp_path)
    assert isinstance(history.events, np.memmap)
    assert 100_000 + 4 == len(history.of(Kind.ARRIVED))


@pytest.mark.parametrize(
    ("trial", "says"),
    [
        (None, "cannot read the trial"),
        ("{", "is not JSON"),
        ("[]", "contains no badbatch trial"),
        ('{"badbatch_trial": 99}', "not a badbatch trial of format 1"),
        ('{"badbatch_trial": 1, "loader": "a:b"}', "incomplete"),
    ],
)
def test_a_folder_without_a_trial_is_refused_in_one_line(tmp_path: Path, trial: str | None, says: str) -> None:
    """A file that is not a trial is a user's error that says what is wrong with the file."""
    if trial is not None:
        (tmp_path / "trial.json").write_text(trial, encoding="utf-8")
    with pytest.raises(UserError, match=says) as caught:
        History.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ended", ["{", "[]", "{}", '{"cut": null, "seconds": 1, "ranks": 5}'])
def test_a_damaged_ending_is_refused_in_one_line(tmp_path: Path, ended: str) -> None:
    """An end that cannot be read does not make the trial a lost one."""
    with pytest.raises(UserError, match=r"ended\.json is damaged") as caught:
        History.load(folder_of(tmp_path, ended=ended))
    assert "\n" not in str(caught.value)
