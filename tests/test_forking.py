"""A loader whose library does not survive a fork is judged in fresh interpreters, and the report says so."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from pathlib import Path

import pytest
import trials
from badbatch.conformance.engine.forking import Forking
from badbatch.conformance.engine.single import replay
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.report import terminal
from badbatch.conformance.report.model import Report
from badbatch.harness.trial import endings
from history_dsl import history_of

LOADER = "fixtures.loaders.forkless:lines"
OPTIONS = Options(workers=(0,), ranks=(1,), scenarios=("clean", "one-bad"), timeout=0.5, deadline=4.0)


def report_of(loader: str, options: Options, directory: Path = trials.ROOT) -> Report:
    """The report of a suite."""
    with Suite(loader, options, directory) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the trials of the loader are kept."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def report(kept: Path) -> Report:
    """Of a loader that stalls in a fork."""
    return report_of(LOADER, dataclasses.replace(OPTIONS, keep=kept))


def test_it_passes_in_fresh_interpreters(report: Report) -> None:
    """Nothing of the stall is reported as a failure."""
    assert report.ok, report
    assert {verdict.mark for verdict in report.verdicts} == {Mark.PASS, Mark.NA}


def test_the_report_says_why(report: Report) -> None:
    """How trials were started, with the trial that showed it, in the terminal and in the JSON report."""
    assert report.isolation == report.to_json()["isolation"] == "spawn"
    [note] = report.notes
    assert note.startswith("trials run in fresh interpreters: clean[workers=0,source=jsonl] stalls in a fork")
    assert "does not survive a fork" in " ".join(terminal.render(report).split())


def test_a_kept_trial_is_replayed_as_it_was_run(report: Report, kept: Path) -> None:
    """In a fresh interpreter, although nothing else says that a fork would stall."""
    [folder] = kept.glob("one-bad*")
    assert json.loads((folder / endings.ENDED).read_text(encoding="utf-8"))["isolation"] == "spawn"
    again, history = replay(folder)
    assert history.complete
    assert again.isolation == "spawn"


def test_a_user_who_asks_for_forks_gets_them() -> None:
    """Then the stall is what the loader does."""
    found = report_of(LOADER, dataclasses.replace(OPTIONS, isolation="fork", scenarios=("clean",)))
    assert found.isolation == "fork"
    assert not found.ok


def test_a_loader_that_hangs_in_a_fresh_interpreter_too_is_at_fault(tmp_path: Path) -> None:
    """It fails as without the second try, and the other trials stay forks."""
    (tmp_path / "endless.py").write_text(
        textwrap.dedent(
            """
            import threading
            from badbatch.harness import loader

            @loader(sources=("jsonl",), on_damage="skip", batches="full", tail="exact", workers=(0,))
            def lines(job):
                while True:
                    yield threading.Event().wait()
            """
        ),
        encoding="utf-8",
    )
    found = report_of("endless:lines", dataclasses.replace(OPTIONS, scenarios=("clean",)), tmp_path)
    assert found.isolation == "fork"
    assert found.notes == ()
    assert not found.ok
    assert "stalled" in {trial.ended for trial in found.trials} or "out of time" in {trial.ended for trial in found.trials}


@pytest.mark.parametrize(
    ("forked", "fresh", "words"),
    [
        ("0-3 ask stalled", "0-3 4-7 8-11 end", "stalls in a fork"),
        ("0-3 ask died:-11", "0-3 4-7 8-11 end", "is killed by a signal in a fork"),
        ("0-3 ask stalled", "0-3 ask stalled", ""),
        ("0-3 ask stalled", "0-3 ask died:-11", ""),
    ],
)
def test_what_is_learned(forked: str, fresh: str, words: str) -> None:
    """Only a trial that runs to its end in a fresh interpreter shows that the fork was at fault; it is tried once in each cell."""
    forking = Forking()
    assert forking.doubts(history_of(forked))
    assert not forking.doubts(history_of(forked))
    assert forking.compare(history_of(forked), history_of(fresh)) == bool(words)
    assert words in forking.why


def test_what_is_no_sign_of_a_fork() -> None:
    """An epoch that ends, with or without errors, and a process that the machine killed."""
    for story in ("0-3 4-7 8-11 end", "0-3 ask died:-9", "raise@factory:TypeError:no_such_option"):
        assert not Forking().doubts(history_of(story))
