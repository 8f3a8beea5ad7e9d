"""The probe: which loaders are refused, with which words, and what is inferred of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.probe import infer_workers
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.report import terminal
from badbatch.harness.contract.job import Contract
from badbatch.harness.errors import LoaderError
from badbatch.harness.trial.event_log import Kind
from history_dsl import history_of
from trials import ROOT


def refused(name: str) -> str:
    """The line with which a loader is refused."""
    with Suite(f"tests.rogues.undeclared:{name}", Options(workers=(0,), ranks=(1,)), ROOT) as suite:
        suite.start()
        with pytest.raises(LoaderError) as caught:
            suite.prepare()
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("name", ["of_files", "lazily"])
def test_a_loader_of_files_without_sources_must_declare_them(name: str) -> None:
    """The line says that job.root is None with this source, and what to declare."""
    line = refused(name)
    assert "NoneType" in line
    assert "job.root is None with source 'map'" in line
    assert '@loader(sources=("imagefolder",))' in line


def test_a_loader_of_a_data_set_that_declares_files_gets_that_error() -> None:
    """The same the other way round."""
    line = refused("of_a_dataset")
    assert "job.dataset is None with source 'jsonl'" in line
    assert '@loader(sources=("map",))' in line


def test_a_class_that_takes_a_folder_gets_the_error_that_it_gets_a_job() -> None:
    """A class whose only parameter is not called dataset is called with the job."""
    assert "it is called with one argument, the job: its files are in job.root" in refused("OfRoot")


@pytest.mark.parametrize(
    ("story", "settings", "found"),
    [
        ("w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 8,10 9,11 end", {}, "per-worker"),
        ("0,2,4,6 1,3,5,7 8,10 9,11 end", {"source": "jsonl"}, "per-worker"),  # opens by C libraries are not recorded
        ("w0:read0-3,8,9 w1:read4-7 0-3 4-7 8,9 end", {"samples": 10}, "last"),
        # A short batch that is not the last of its worker, two of one worker, more than there are workers.
        ("w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2 1,3,5,7 4,6,8,10 9,11 end", {}, "last"),
        ("w0:read0-5 w1:read6-11 0-2 3-5 6-9 10,11 end", {}, "last"),
        ("0-2 3-5 6-8 9-11 end", {"source": "jsonl"}, "last"),
        ("w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 8,10 ask stalled", {}, None),  # it shows nothing
        ("raise@factory:ValueError:no_workers", {}, None),
    ],
)
def test_whether_each_worker_makes_its_own_batches_is_inferred(story: str, settings: dict[str, Any], found: str | None) -> None:
    """Where all short batches are the last of a worker, and several; a probe that failed says nothing."""
    contract = infer_workers(history_of(story, workers=2, contract=Contract(), **settings), Contract(readers="processes"))
    assert contract.short_batches == found
    assert ("short_batches" in contract.inferred) == bool(found)


@pytest.mark.parametrize(
    ("story", "source", "found"),
    [
        ("0,2,4,6 1,3,5,7 8,10 9,11 end", "stream", "per-worker"),
        ("0,2,4,6 1,3,5,7 8,10 9,11 end", "jsonl", "per-worker"),
        ("0,2,4,6 1,3,5,7 8,10 9,11 end", "map", None),  # a set with an index is owed in order
        ("8-11 4-7 0-3 end", "stream", None),
        ("0-3 4-7 8-11 end", "stream", None),
    ],
)
def test_the_order_of_each_worker_is_inferred(story: str, source: str, found: str | None) -> None:
    """On a stream and on disk, where the samples can be split into one row in order for each worker."""
    contract = infer_workers(history_of(story, workers=2, contract=Contract(), source=source), Contract(readers="processes"))
    assert contract.unshuffled == found
    assert ("unshuffled" in contract.inferred) == bool(found)


def test_batches_of_each_worker_that_nothing_declares_fail_once() -> None:
    """Not in every cell: where nothing else is asked, as one failure that says what to declare; and what drop_last loses by it."""
    options = Options(scenarios=("clean", "tiny", "one-bad", "three-epochs", "shuffled", "drop-last"), ranks=(2,))
    with Suite("tests.rogues.undeclared:batched_per_worker", options, ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    contract = report.contracts["sharded_stream"]
    assert (contract.short_batches, "short_batches" in contract.inferred) == ("per-worker", True)
    failed = {(verdict.trial.partition(",source")[0], verdict.check) for verdict in report.verdicts if verdict.mark is Mark.FAIL}
    assert {trial for trial, check in failed if check == "full-batches"} == {"clean[workers=2,ranks=2", "tiny[workers=2,ranks=2"}
    text = " ".join(terminal.render(report).split())
    assert text.count("[batched-per-worker]") == 2  # the failure, and the list of what to fix first
    assert 'declare @loader(short_batches="per-worker")' in text
    assert 'each worker ends with a short batch of its own, not declared: @loader(short_batches="per-worker")' in text


@pytest.mark.parametrize(
    ("story", "threads", "found"),
    [
        ("w0:read0-3 w1:read4-7 0-3 4-7 w0:read8-11 8-11 end", 0, "processes"),
        ("read0-3 0-3 read4-7 4-7 read8-11 8-11 end", 12, "threads"),
        ("read0-3 0-3 read4-7 4-7 read8-11 8-11 end", 0, "consumer"),
        ("read0-3 0-3 read4-7 4-7 read8-11 8-11 end", 8, "threads"),  # the first batch is read to learn its shape
        ("w0:read0-3 w1:read4-7 0-3 4-7 read8-11 8-11 end", 0, "processes"),
        ("0-3 4-7 8-11 end", 0, None),  # no read was seen
        ("w0:read0-3 0-3 ask stalled", 0, None),
    ],
)
def test_who_reads_is_inferred(story: str, threads: int, found: str | None) -> None:
    """From the process and the thread of each read, in a probe with workers."""
    history = history_of(story, workers=2)
    reads = np.flatnonzero(history.events["kind"] == Kind.READ)
    history.events["flags"][reads[len(reads) - threads :]] = 1  # not the main thread
    contract = infer_workers(history, Contract(short_batches="last"))
    assert contract.readers == found
    assert contract.inferred == (("readers",) if found else ())


def test_what_is_declared_is_not_inferred() -> None:
    """A loader that says who reads is believed."""
    declared = Contract(readers="threads", short_batches="last")
    assert infer_workers(history_of("w0:read0-11 0-3 4-7 8-11 end", workers=2), declared) == declared


def test_an_error_in_building_is_that_of_the_epoch() -> None:
    """A loader that reads everything when it is built raises there: that is a stop, which the clean scenario does not suffer from."""
    options = Options(scenarios=("clean", "one-bad", "after-failure", "nan", "stop-iteration"), workers=(0,), ranks=(1,))
    with Suite("tests.rogues.undeclared:read_when_built", options, ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    contract = report.contracts["map"]
    assert (contract.on_damage, contract.after_error) == ("raise", "stop")
    wrong = [f"{v.trial} {v.check}: {v.happened or v.reason}" for v in report.verdicts if v.mark not in (Mark.PASS, Mark.NA)]
    assert wrong == []
    text = " ".join(terminal.render(report).split())
    assert "1 error, then the end of the epoch; 39 of 39 good samples do not arrive" in text


def test_a_loader_that_cannot_be_built_on_whole_data_is_refused() -> None:
    """At once, and in one line, which speaks of whole data."""
    assert "building it with source 'map' raised ValueError: no licence" in refused("never_built")
