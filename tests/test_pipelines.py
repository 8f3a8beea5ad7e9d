"""Real pipelines over corpora on disk: what they keep, and what they are rightly blamed for."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

for _needed in ("PIL", "faker"):
    pytest.importorskip(_needed)

import trials
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options
from badbatch.harness.sources.base import truth
from badbatch.harness.sources.truth import Owed
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.spec import Topology

FOLDER = "fixtures.pipelines.pillow_folder"
TABLES = "fixtures.pipelines.arrow_tables"
SHARDS = "fixtures.pipelines.tar_shards"
HUB = "fixtures.pipelines.hub_datasets"
DAMAGE = ("one-bad", "damage-bits", "damage-cut", "damage-not-a-picture", "damage-path", "damage-structure", "damage-zeros")


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips where a library is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed: pip install 'badbatch[readers]'")


def put(
    loader: str, source: str, names: Iterable[str], folder: Path, topologies: Iterable[Topology] = (Topology(),), **settings: float
) -> list[trials.Judged]:
    """The trials of a pipeline in these scenarios, judged; scenario by scenario."""
    topologies = list(topologies)
    specs = [
        trials.question(loader, name, topology, source, **settings)  # type: ignore[arg-type]
        for name in names
        for topology in topologies
    ]
    judged = trials.put(specs, folder)
    return [judged[spec] for spec in specs]


def one(loader: str, source: str, name: str, folder: Path, topology: Topology = Topology(), **settings: float) -> trials.Judged:
    """One trial of a pipeline, judged."""
    return put(loader, source, [name], folder, [topology], **settings)[0]


def unexplained(judged: Iterable[trials.Judged]) -> list[str]:
    """What is neither kept, nor out of question, nor explained by another failure."""
    return [line for trial in judged for line in trial.unexplained]


# --- torch's DataLoader and Pillow ---------------------------------------------------------------------------------------


def test_pictures_that_are_raised(tmp_path: Path) -> None:
    """A folder read with Pillow keeps its promise in every family of damage, in every topology."""
    names = ("clean", "remainder-one", "oddities", *DAMAGE, "missing-file", "decoder-memory")
    topologies = [Topology(workers, ranks) for workers in (0, 2) for ranks in (1, 2)]
    assert unexplained(put(f"{FOLDER}:raising", "imagefolder", names, tmp_path, topologies)) == []


def test_pictures_that_are_skipped(tmp_path: Path) -> None:
    """The same with what is damaged left out and counted, inside of workers too."""
    names = ("clean", "oddities", *DAMAGE, "missing-file", "decoder-memory")
    assert unexplained(put(f"{FOLDER}:skipping", "imagefolder", names, tmp_path, [Topology(0), Topology(2)])) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_truncated_pictures_that_pillow_is_set_to_load(workers: int, tmp_path: Path) -> None:
    """LOAD_TRUNCATED_IMAGES delivers a half-grey picture, and only the check on content fails."""
    trial = one(f"{FOLDER}:truncated", "imagefolder", "one-bad", tmp_path, Topology(workers))
    assert list(trial.blamed) == ["content-intact"]
    assert trial.blamed["content-intact"].witnesses == (5,)
    assert "damaged and passed as good: 5" in trial.blamed["content-intact"].happened
    diagnosis = trial.blamed["content-intact"].diagnosis
    assert diagnosis is not None
    assert diagnosis.id == "cut-picture-filled-up"


def test_a_lazily_opened_picture_never_arrives(tmp_path: Path) -> None:
    """From a worker a cut picture that nobody decoded cannot be pickled: its batch vanishes, and the consumer waits."""
    trial = one(f"{FOLDER}:lazy", "imagefolder", "lazy-picture", tmp_path, Topology(2), deadline_s=8.0)
    assert list(trial.blamed) == ["finite-epoch"]
    diagnosis = trial.blamed["finite-epoch"].diagnosis
    assert diagnosis is not None
    assert diagnosis.id == "batch-unpicklable"
    assert "image file is truncated" in diagnosis.text


def test_a_lazily_opened_picture_arrives_damaged_without_workers(tmp_path: Path) -> None:
    """In the consumer's own process it arrives, as good as any, until somebody looks at it."""
    trial = one(f"{FOLDER}:lazy", "imagefolder", "lazy-picture", tmp_path)
    assert {check: verdict.witnesses for check, verdict in trial.blamed.items()} == {"content-intact": (5,)}


@pytest.mark.parametrize("loader", ["raising", "decoding"])
@pytest.mark.parametrize("name", ["decoder-segfault", "decoder-abort"])
@pytest.mark.parametrize("method", [None, "spawn"])
def test_a_decoder_that_crashes(loader: str, name: str, method: str | None, tmp_path: Path) -> None:
    """The decoder of a worker really dies, by Pillow's plug-in or by the job's decoder, and torch reports it to the consumer."""
    trial = one(f"{FOLDER}:{loader}", "imagefolder", name, tmp_path, Topology(2, 1, method))
    assert died_of(trial) == 5


def died_of(trial: trials.Judged) -> int:
    """The sample that killed a worker; its death was reported to the consumer."""
    history = trial.history
    (death,) = history.of(Kind.FAULT)
    assert int(death["pid"]) not in set(history.of(Kind.ASK)["pid"].tolist())
    events = history.events
    assert not ((events["pid"] == death["pid"]) & (events["time"] > death["time"])).any()
    raised = history.of(Kind.RAISED)
    assert (raised["time"] > death["time"]).any()
    assert "crash-surfaces" not in trial.blamed
    return int(death["sample"])


def test_a_read_that_hangs(tmp_path: Path) -> None:
    """A pipe that nobody feeds ends in torch's timeout; again and again, as is known."""
    trial = one(f"{FOLDER}:raising", "imagefolder", "hung-read", tmp_path, Topology(2), timeout_s=2.0)
    raised = trial.history.of(Kind.RAISED)
    assert "timed out after 2" in trial.history.text(raised[0])
    assert [int(sample) for sample in trial.history.struck] == [5]
    assert "finite-epoch" in trial.blamed
    assert set(trial.blamed) <= {"finite-epoch", "correct-timeout"}  # closing takes torch about as long as it may


def test_a_decoder_that_hangs(tmp_path: Path) -> None:
    """A decoder that keeps the lock stops the epoch: by timeouts without end, or in the middle of sending a batch.

    The lock also stops the thread that sends the worker's earlier batches; the consumer waits for a half-sent one
    without a timeout.
    """
    trial = one(f"{FOLDER}:raising", "imagefolder", "decoder-hang", tmp_path, Topology(2), timeout_s=2.0)
    assert [int(sample) for sample in trial.history.struck] == [5]
    assert "finite-epoch" in trial.blamed


def test_pipes_that_are_not_listed(tmp_path: Path) -> None:
    """A pipeline that lists only regular files never sees a pipe: nothing is lost, and nothing is required."""
    for trial in put(f"{FOLDER}:regular", "imagefolder", ("hung-read", "slow-read"), tmp_path, [Topology(2)], timeout_s=20.0):
        assert trial.unexplained == []
        assert "regular files" in {verdict.check: verdict.reason for verdict in trial.verdicts}["finite-epoch"]


def test_a_read_that_is_slow(tmp_path: Path) -> None:
    """A pipe that trickles delivers its picture within the timeout, whole."""
    trial = one(f"{FOLDER}:raising", "imagefolder", "slow-read", tmp_path, Topology(2), timeout_s=20.0)
    assert trial.unexplained == []
    assert 5 in trial.history.of(Kind.ARRIVED)["sample"]


def test_the_command_finds_a_pipeline_by_its_name() -> None:
    """A factory that declares a source on disk gets its corpora, and its probes, like any other."""
    options = Options(workers=(0, 2), ranks=(1,), scenarios=("clean", "one-bad"))
    with Suite(f"{FOLDER}:raising", options, trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    assert report.summary["fail"] == 0
    assert report.summary["inconclusive"] == 0
    assert sorted(trial.spec.id for trial in report.trials) == [
        f"{name}[workers={workers},source=imagefolder]" for name in ("clean", "one-bad") for workers in (0, 2)
    ]


# --- pyarrow -------------------------------------------------------------------------------------------------------------


@needs("pyarrow")
@pytest.mark.parametrize("source", ["parquet", "windows"])
def test_rows_that_are_skipped(source: str, tmp_path: Path) -> None:
    """pyarrow's reader with a check of every row loses what is damaged, and of broken files what it promised to lose."""
    names = ("clean", "remainder-one", "oddities", "one-bad", "damage-bits", "damage-cut", "damage-null", "damage-schema",
             "cut-shard", "lost-shard", "few-shards", "uneven-shards")  # fmt: skip
    assert unexplained(put(f"{TABLES}:skipping", source, names, tmp_path)) == []


@needs("pyarrow")
@pytest.mark.parametrize(("source", "name"), [("parquet", "one-bad"), ("windows", "one-bad"), ("windows", "damage-value")])
def test_rows_that_nobody_checks(source: str, name: str, tmp_path: Path) -> None:
    """pyarrow returns nulls, short windows and infinities unchanged: delivering them as good breaks the check on content."""
    trial = one(f"{TABLES}:unchecked", source, name, tmp_path)
    assert list(trial.blamed) == ["content-intact"]
    assert set(trial.blamed["content-intact"].witnesses) == set(damaged(trial))
    diagnosis = trial.blamed["content-intact"].diagnosis
    assert diagnosis is not None
    assert diagnosis.id == "schema-not-checked"


# --- webdataset ----------------------------------------------------------------------------------------------------------


@needs("webdataset")
def test_shards_that_end_at_an_error(tmp_path: Path) -> None:
    """The library's default handler raises, and what was read until then was whole."""
    names = ("clean", "remainder-one", "oddities", "one-bad", "cut-shard", "lost-shard", "few-shards", "uneven-shards")
    assert unexplained(put(f"{SHARDS}:raising", "webdataset", names, tmp_path)) == []


@needs("webdataset")
@pytest.mark.parametrize("name", ["one-bad", "cut-shard", "lost-shard"])
def test_shards_whose_handler_warns(name: str, tmp_path: Path) -> None:
    """``warn_and_continue`` skips without counting: what is missing is right, and nobody says how much it is."""
    trial = one(f"{SHARDS}:warning", "webdataset", name, tmp_path)
    assert list(trial.blamed) == ["exact-skip-count"]


def damaged(trial: trials.Judged) -> tuple[int, ...]:
    """The samples that must not arrive as good."""
    return tuple(np.flatnonzero(truth(trial.history.spec).owed == Owed.DAMAGED).tolist())


@needs("webdataset")
def test_shards_whose_handler_counts(tmp_path: Path) -> None:
    """A handler that reports each error keeps the promise."""
    names = ("clean", "oddities", "one-bad", "damage-cut", "cut-shard", "lost-shard")
    assert unexplained(put(f"{SHARDS}:counting", "webdataset", names, tmp_path)) == []


@needs("webdataset")
def test_shards_with_damaged_pictures(tmp_path: Path) -> None:
    """A picture that cannot be decoded costs its own sample: the library's decoding stage fails, and the stream continues."""
    names = ("damage-bits", "damage-not-a-picture", "damage-structure", "damage-zeros", "decoder-memory")
    assert unexplained(put(f"{SHARDS}:counting", "webdataset", names, tmp_path)) == []


@needs("webdataset")
def test_shards_with_a_picture_that_kills_the_decoder(tmp_path: Path) -> None:
    """The member of a shard affects its worker like a file does, and the consumer learns of the worker's death."""
    for trial in put(f"{SHARDS}:counting", "webdataset", ("decoder-segfault", "decoder-abort"), tmp_path, [Topology(2)]):
        assert (died_of(trial),) == damaged(trial)


@needs("webdataset")
def test_shards_whose_members_do_not_stand_together(tmp_path: Path) -> None:
    """The library treats each run of one key as a sample, so damage to a sample is counted in pieces."""
    trial = one(f"{SHARDS}:counting", "webdataset", "damage-members", tmp_path)
    assert list(trial.blamed) == ["exact-skip-count"]


@needs("webdataset")
def test_shards_with_a_bad_header_end_quietly(tmp_path: Path) -> None:
    """At a header that is none, tarfile takes a shard for ended: samples that a patient reader finds are lost in silence."""
    trial = one(f"{SHARDS}:counting", "webdataset", "damage-header", tmp_path)
    assert list(trial.blamed) == ["no-lost-batches"]
    assert "some decoder finds good" in trial.blamed["no-lost-batches"].happened


# --- Hugging Face datasets -----------------------------------------------------------------------------------------------


@pytest.fixture
def hub_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library keeps lock files in a folder of its user's."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


@needs("datasets", "pyarrow")
@pytest.mark.usefixtures("hub_home")
@pytest.mark.parametrize(("loader", "source"), [("parquet", "parquet"), ("pictures", "imagefolder")])
def test_streams_of_the_hub(loader: str, source: str, tmp_path: Path) -> None:
    """Streaming data sets, split by the library by rank and worker, deliver each sample once and whole."""
    topologies = [Topology(0), Topology(2), Topology(0, 2)]
    assert unexplained(put(f"{HUB}:{loader}", source, ["clean"], tmp_path / "trials", topologies)) == []


@needs("datasets", "pyarrow")
@pytest.mark.usefixtures("hub_home")
def test_pictures_of_the_hub(tmp_path: Path) -> None:
    """The library's decoder keeps every oddity, and what it raises for a cut picture names nobody."""
    kept, bad = put(f"{HUB}:pictures", "imagefolder", ["oddities", "one-bad"], tmp_path / "trials")
    assert kept.unexplained == []
    assert list(bad.blamed) == ["error-names-sample"]


@needs("datasets", "pyarrow")
@pytest.mark.usefixtures("hub_home")
def test_an_empty_row_group_stops_the_hub(tmp_path: Path) -> None:
    """A file whose first row group has no rows is legal, but the library requests batches of that size from pyarrow."""
    # Since https://github.com/huggingface/datasets/pull/6701 the size of a batch is that of the first row group.
    trial = one(f"{HUB}:parquet", "parquet", "oddities", tmp_path / "trials")
    (raised,) = trial.history.of(Kind.RAISED)
    if "BatchSize must be greater than 0" not in trial.history.text(raised):
        pytest.skip("another version of the library reads such a file")
    assert trial.blamed


@needs("datasets", "pyarrow")
@pytest.mark.usefixtures("hub_home")
def test_nulls_of_the_hub(tmp_path: Path) -> None:
    """A null where the schema forbids it is delivered like any value."""
    trial = one(f"{HUB}:parquet", "parquet", "one-bad", tmp_path / "trials")
    assert list(trial.blamed) == ["content-intact"]
