"""Loaders known good are blamed for nothing."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest
import trials
from badbatch.conformance import scenarios
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.known import load
from badbatch.conformance.options import Options
from badbatch.harness.exit_codes import ExitCode
from badbatch.harness.faults.keyword_only_error import KeywordOnlyError
from badbatch.harness.faults.two_argument_error import TwoArgumentError
from badbatch.harness.faults.unpicklable_error import UnpicklableError
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.spec import Topology, TrialSpec

from fixtures.loaders.catalogue import FAULTLESS, HONEST
from fixtures.loaders.samples import StreamReader
from fixtures.loaders.transport import WorkerTraceback, pack, unpack

KNOWN = trials.ROOT / "fixtures" / "loaders" / "known-honest.toml"
TOPOLOGIES = [Topology(workers, ranks) for workers in (0, 2) for ranks in (1, 2)]
QUICK = ("clean", "shuffled", "drop-last", "tiny", "one-bad", "all-bad", "one-sided-damage", "ragged-window", "early-break")
"""Every kind of scenario that ends within a moment, and that torch's DataLoader survives."""
HARD = ("segfault", "frozen", "unpicklable-sample", "keyword-only-error", "stop-iteration")
"""What it does not survive, or not with the error as it was."""
WHOLE = os.environ.get("BADBATCH_TEST_WHOLE")

# The first of the faultless goes through the whole suite; these are the others, in two topologies that differ most.
_QUICK = [
    spec
    for loader in HONEST
    if loader != FAULTLESS[0]
    for spec in trials.questions(loader, QUICK, (Topology(0, 1), Topology(2, 2)))
]
_QUICK += [
    spec
    for loader in HONEST
    for spec in trials.questions(loader, ("three-epochs", "shuffled", "early-break"), (Topology(2, 1, persistent=True),))
]
_HARD = [spec for loader in FAULTLESS[1:] for spec in trials.questions(loader, HARD, (Topology(2, 2),))]
_AFRESH = [
    trials.question(FAULTLESS[0], "killed", Topology(2, 1, "spawn"), deadline_s=90.0),
    # Longer than a fork server takes to start a worker again, also on a loaded machine.
    trials.question(FAULTLESS[0], "hung-read", Topology(2, 1, "forkserver"), timeout_s=6.0, deadline_s=90.0),
]
_BUDGET = trials.question("fixtures.loaders.honest:map_skip_full", "skips-beyond-budget")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[TrialSpec, trials.Judged]:
    """All trials of this module but those of the suite, side by side."""
    return trials.put([*_AFRESH, *_HARD, *_QUICK, _BUDGET], tmp_path_factory.mktemp("honest"))


def _unexplained(judged: dict[TrialSpec, trials.Judged], specs: list[TrialSpec]) -> list[str]:
    return [f"{spec.loader} {line}" for spec in specs for line in judged[spec].unexplained]


def test_honest_loaders_pass_the_quick_scenarios(judged: dict[TrialSpec, trials.Judged]) -> None:
    """Each honest loader is blamed for nothing where nothing kills or blocks a process."""
    assert _unexplained(judged, _QUICK) == []


def test_faultless_loaders_pass_the_hard_scenarios(judged: dict[TrialSpec, trials.Judged]) -> None:
    """Those in plain multiprocessing are blamed for nothing where workers die, hang, or cannot say what they have."""
    assert _unexplained(judged, _HARD) == []


@pytest.mark.parametrize("spec", _AFRESH, ids=lambda spec: spec.id)
def test_faultless_loaders_start_workers_afresh(spec: TrialSpec, judged: dict[TrialSpec, trials.Judged]) -> None:
    """They keep their promises with workers that are not forks, which take seconds to start."""
    assert _unexplained(judged, [spec]) == []


@pytest.mark.timeout(300)
def test_one_loader_passes_the_whole_suite() -> None:
    """The loader in plain multiprocessing passes every scenario in every topology, and the suite says so."""
    with Suite(FAULTLESS[0], Options(), trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    wrong = [v for v in report.verdicts if v.mark not in (Mark.PASS, Mark.NA)]
    assert [f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}" for v in wrong] == []
    assert {trial.spec.scenario for trial in report.trials} == {*scenarios.names("map"), *scenarios.names("stream")}
    assert report.exit_code is ExitCode.KEPT


@pytest.mark.timeout(300)
def test_a_loader_with_threads_for_workers_passes_undeclared() -> None:
    """A probe shows who reads: faults that would hit the training process are not tested, and a thread that hangs is."""
    with Suite("fixtures.loaders.honest:threads", Options(workers=(2,), ranks=(1,)), trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    wrong = [v for v in report.verdicts if v.mark not in (Mark.PASS, Mark.NA)]
    assert [f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}" for v in wrong] == []
    assert (report.contracts["map"].readers, "readers" in report.contracts["map"].inferred) == ("threads", True)
    not_run = {trial.spec.scenario for trial in report.trials if trial.ended == "not run"}
    not_run -= {name for name in not_run if scenarios.find(name).resumes or scenarios.find(name).limits_skips}
    assert not_run == {"hung-holding-lock", "segfault", "abort", "killed", "frozen", "exit", "exit-zero"}
    assert report.exit_code is ExitCode.KEPT


@pytest.mark.skipif(not WHOLE, reason="takes minutes for each loader: set BADBATCH_TEST_WHOLE=1")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("loader", HONEST, ids=lambda name: name.partition(":")[2])
def test_honest_loaders_pass_the_whole_suite(loader: str) -> None:
    """Every honest loader passes everything except what is listed in known-honest.toml, and no entry there is stale."""
    with Suite(loader, Options(known=(str(KNOWN),)), trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    wrong = [v for v in report.verdicts if v.mark not in (Mark.PASS, Mark.NA, Mark.KNOWN)]
    assert [f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}" for v in wrong] == []
    assert report.stale_known == ()


def test_known_file_spares_the_faultless() -> None:
    """No entry of known-honest.toml covers a loader in plain multiprocessing."""
    entries = load(KNOWN)
    assert entries
    for entry in entries:
        for loader in FAULTLESS:
            for scenario in scenarios.names():
                assert not any(entry.covers(loader, scenario, "map", topology) for topology in TOPOLOGIES)


def test_skip_budget_ends_in_an_error(judged: dict[TrialSpec, trials.Judged]) -> None:
    """More damaged samples in a row than the job allows are an error that says how many."""
    history = judged[_BUDGET].history
    raised = history.of(Kind.RAISED)
    assert [history.text(event) for event in raised] == ["3 damaged samples in a row; at most 2 are skipped"]
    assert len(history.of(Kind.SKIPPED)) == 3


class Local(Exception):
    """Has its own message."""

    def __str__(self) -> str:
        return f"{self.args[0]} again"


@pytest.mark.parametrize(
    "error",
    [
        OSError("sample 5 cannot be read"),
        FileNotFoundError(2, "No such file", "a.jpg"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        subprocess.CalledProcessError(3, "ffmpeg"),
        TwoArgumentError(5, "cannot be read"),
        KeywordOnlyError(sample=5, reason="cannot be read"),
        UnpicklableError("sample 5 cannot be read"),
        Local("once"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way_out_of_a_worker(error: Exception) -> None:
    """Type, message and the attributes that can be pickled come out as they went in, and the worker is named."""
    back = unpack(pack(error, "in worker 1 (pid 77), reading sample 5"))
    assert isinstance(back, type(error))
    assert str(back) == str(error)
    kept = {name: value for name, value in vars(error).items() if not isinstance(value, type(threading.Lock()))}
    assert vars(back) == kept
    assert isinstance(back.__cause__, WorkerTraceback)
    assert "worker 1 (pid 77)" in str(back.__cause__)


def test_error_of_a_class_that_cannot_be_imported() -> None:
    """Of a class that was made inside a function, the name and the message survive."""

    class Inner(Exception):
        pass

    back = unpack(pack(Inner("sample 5 cannot be read"), "in worker 1"))
    assert (type(back).__name__, str(back)) == ("Inner", "sample 5 cannot be read")


def test_a_stream_is_read_up_to_the_requested_position() -> None:
    """Damage that belongs to another process is ignored; what padding requests again is kept."""

    class Source:
        def __init__(self) -> None:
            self.position = -1

        def __iter__(self) -> Source:
            return self

        def __next__(self) -> int:
            self.position += 1
            if self.position == 2:
                raise OSError("sample 2 cannot be read")
            if self.position >= 6:
                raise StopIteration
            return self.position

    reader = StreamReader(Source(), samples=8, kept=1)
    assert [reader.get(index) for index in (1, 3, 0)] == [1, 3, 0]
    with pytest.raises(RuntimeError, match="the stream ended at sample 7 of 8"):
        reader.get(7)
