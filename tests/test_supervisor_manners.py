"""Loaders with bad manners change nothing but their own record."""

from __future__ import annotations

from pathlib import Path

import pytest
from badbatch.harness.trial.event_log import Kind, Where
from staging import (
    EVERYTHING,
    ON_STAGE,
    Run,
    delivered,
    errors,
    unreadable,
)

pytestmark = ON_STAGE


def test_a_loader_that_prints_megabytes_fills_nothing(run: Run) -> None:
    """Forty-eight megabytes later the trial is whole, its log is small, and the last line is in it."""
    history = run("prints")
    assert EVERYTHING == delivered(history)
    assert history.output.endswith("the last line")
    assert history.folder is not None
    assert (Path(history.folder) / "output-0.txt").stat().st_size < 5 << 20


@pytest.mark.parametrize(("name", "code"), [("exits_with_0", 0), ("exits_with_3", 3)])
def test_an_exit_of_the_consumer_is_no_end(run: Run, name: str, code: int) -> None:
    """os._exit is reported with its code, and a code of 0 does not make the trial complete."""
    history = run(name)
    assert (None, (code,)) == (history.ended.cut, history.ended.ranks)
    assert not history.complete
    assert EVERYTHING[:4] == delivered(history)
    assert Kind.ASK == history.events[history.events["kind"] != Kind.DELAY][-1]["kind"]


def test_a_loader_that_closes_all_descriptors_is_still_recorded(run: Run) -> None:
    """After os.closerange in the consumer the record continues: every sample arrives."""
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
    """What is not an Exception is also caught and reported, and the consumer continues."""
    history = run(name)
    assert [error] == errors(history, Where.NEXT)
    assert history.complete


def test_a_loader_with_awkward_manners_is_reported_for_each_of_them(run: Run) -> None:
    """Errors of len(), of what is skipped and of close() are recorded where they come up, and end nothing."""
    history = run("awkward")
    assert EVERYTHING == delivered(history)
    assert history.complete
    assert ["builtins.RuntimeError: no length today"] * 2 == errors(history, Where.LENGTH)
    assert ["builtins.RuntimeError: no count today"] == errors(history, Where.REPORT)
    assert ["builtins.RuntimeError: no end today"] == errors(history, Where.CLOSE)


def test_an_invalid_report_is_reported_in_one_line(run: Run) -> None:
    """What ``skipped`` contains is read as a count or as ids, or reported as neither."""
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
def test_a_loader_whose_work_cannot_be_read_is_reported_in_one_line(run: Run, name: str, says: str) -> None:
    """No iterable, no ids, a batch that fights back: the trial ends, and one line says why nothing was read."""
    history = run(name)
    assert history.complete
    [line] = unreadable(history)
    assert line.startswith(says)
    assert "\n" not in line


# What outlives its loader.
