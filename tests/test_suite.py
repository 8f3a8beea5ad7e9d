"""What the engine makes of its trials: whether a cell is clean, and one verdict of several runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from badbatch.conformance import scenarios
from badbatch.conformance.engine.api import name_of
from badbatch.conformance.engine.artifacts import slug
from badbatch.conformance.engine.calibration import Calibration, calibrate
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.policy import not_clean
from badbatch.conformance.engine.questions import stays_away
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.engine.trial_state import merge
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.scenarios import quick
from badbatch.harness.contract.job import Contract
from badbatch.harness.errors import UserError
from badbatch.harness.sources.base import on_disk
from badbatch.harness.trial.spec import Topology
from history_dsl import RAISES, history_of
from trials import ROOT

DROPS = dataclasses.replace(RAISES, tail="drop")
PADS = dataclasses.replace(RAISES, tail="pad")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ("0-3 4-7 8-11 end", ""),
        ("0-3 8-11 end", "loses samples"),
        ("0-3 4-7 4-7 8-11 end", "doubles samples"),
        ("0-3 4-7 ask stalled", "never ends"),
        ("0-3 ask died:-11", "ends its own process (it was killed by signal SIGSEGV)"),
        ("raise@factory:TypeError:no_such_option", "cannot be built"),
        ("raise@iter:TypeError:no_such_option", "cannot be iterated"),
    ],
)
def test_what_spoils_a_cell(story: str, words: str) -> None:
    """Samples that are lost or doubled, or an epoch that never ends, make trials with faults inconclusive; nothing else does."""
    found = not_clean(history_of(story))
    assert words in found
    assert bool(words) == bool(found)


def test_what_the_contract_allows_spoils_nothing() -> None:
    """A remainder that is dropped or padded as promised does not make the loader's other trials inconclusive."""
    dropped = history_of("r0:0,2 r0:end r1:1,3 r1:end", samples=5, batch=2, ranks=2, contract=DROPS)
    padded = history_of("r0:0,2 r0:4 r0:end r1:1,3 r1:0 r1:end", samples=5, batch=2, ranks=2, contract=PADS)
    assert not_clean(dropped) == ""
    assert not_clean(padded) == ""


@pytest.mark.parametrize(
    ("honours", "when", "expected"),
    [
        (True, "auto", {"three-epochs[workers=2,persistent]"}),
        (None, "auto", set()),
        (True, "never", set()),
        (True, "always", {"clean[workers=2,persistent]", "clean[workers=2,ranks=2,persistent]",
                          "three-epochs[workers=2,persistent]", "three-epochs[workers=2,ranks=2,persistent]"}),
        (None, "always", {"clean[workers=2,persistent]", "clean[workers=2,ranks=2,persistent]",
                          "three-epochs[workers=2,persistent]", "three-epochs[workers=2,ranks=2,persistent]"}),
    ],
)  # fmt: skip
def test_where_persistent_workers_are_used(honours: bool | None, when: Any, expected: set[str]) -> None:
    """By default at one rank, where a later epoch could show them, and only of loaders that honour them; else n/a."""
    options = Options(scenarios=("clean", "three-epochs"), persistent_workers=when)
    contract = dataclasses.replace(PADS, persistent_workers=honours)
    with Suite("nowhere:loader", options) as suite:
        suite.lay_out(["map"], lambda source: contract)
        persistent = {spec.id: spec for spec in suite.specs() if spec.topology.persistent}
        assert set(persistent) == expected
        not_run = {name for name, spec in persistent.items() if suite._trials[spec].result is not None}
        assert not_run == (set() if honours else expected)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [((), {"map", "sharded_stream", "jsonl"}), (("*stream",), {"sharded_stream"}), (("map", "json*"), {"map", "jsonl"})],
)
def test_only_the_selected_sources_are_offered(globs: tuple[str, ...], expected: set[str]) -> None:
    """Names and globs select among the sources that a loader declares; none of them is refused in one line."""
    declared = ["map", "sharded_stream", "jsonl"]
    with Suite("nowhere:loader", Options(scenarios=("clean",), sources=globs)) as suite:
        suite.lay_out(declared, lambda source: PADS)
        assert {spec.source for spec in suite.specs()} == set(suite.sources) == expected
    with Suite("nowhere:loader", Options(sources=("parquet", "stream"))) as suite, pytest.raises(UserError) as caught:
        suite.lay_out(declared, lambda source: PADS)
    assert "is offered only map, sharded_stream, jsonl, and the selected sources (parquet, stream)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_quick_asks_ten_scenarios_in_two_topologies() -> None:
    """The smallest and the largest topology; in memory other scenarios than on disk; together with --scenario it is refused."""
    with Suite("nowhere:loader", Options(quick=True, workers=(0, 1, 4))) as suite:
        suite.lay_out(["map", "stream"], lambda source: dataclasses.replace(PADS, persistent_workers=True))
        specs = suite.specs()
    assert {str(spec.topology) for spec in specs} == {"workers=0", "workers=4,ranks=2"}
    assert {spec.scenario for spec in specs} == set(quick.IN_MEMORY)
    assert len(quick.IN_MEMORY) == len(quick.ON_DISK) == 10
    assert set(quick.IN_MEMORY) <= set(scenarios.names("map"))
    assert set(quick.ON_DISK) <= {name for source in on_disk() for name in scenarios.names(source.name)}
    with pytest.raises(UserError, match="give one of the two"):
        Options(quick=True, scenarios=("clean",))


def test_the_worst_of_several_runs_is_kept_with_its_rate() -> None:
    """A verdict that is not the same each time is the worst of them, and says how often it failed."""
    good, bad = judge(history_of("0-3 4-7 8-11 end")), judge(history_of("0-3 8-11 end"))
    [lost] = [verdict for verdict in merge([good, bad, good]) if verdict.check == "no-lost-batches"]
    [content] = [verdict for verdict in merge([good, bad, good]) if verdict.check == "content-intact"]
    assert (lost.mark, lost.flaky) == (Mark.FAIL, (1, 3))
    assert (content.mark, content.flaky) == (Mark.PASS, None)


@pytest.mark.parametrize(
    ("readers", "scenario", "source", "asked"),
    [
        (None, "segfault", "map", True),
        ("processes", "frozen", "map", True),
        ("threads", "segfault", "map", False),
        ("threads", "frozen", "map", False),
        ("threads", "hung-holding-lock", "map", False),
        ("threads", "hung-read", "map", True),
        ("threads", "one-bad", "map", True),
        ("threads", "decoder-segfault", "imagefolder", False),
        ("threads", "hung-read", "imagefolder", True),
        ("consumer", "hung-read", "map", False),
        ("consumer", "segfault", "map", False),
        ("consumer", "one-bad", "map", True),
    ],
)
def test_a_fault_is_not_tested_in_the_consumers_own_process(readers: Any, scenario: str, source: str, asked: bool) -> None:
    """Faults that no loader survives are not tested with a loader that declares who reads; a hung thread can be timed out."""
    contract = Contract(readers=readers)
    assert (stays_away(contract, Topology(2), scenarios.find(scenario, source)) == "") is asked


def test_names_of_folders_are_short_and_of_loaders_importable() -> None:
    """A trial's id becomes a path; a factory without its own name is refused."""
    assert slug("one-bad[workers=2,ranks=2,source=stream]") == "one-bad-w2-r2-stream"
    assert name_of(dataclasses.replace) == "dataclasses:replace"
    with pytest.raises(UserError, match="cannot be imported by a name"):
        name_of(lambda job: [])


def test_the_pace_is_that_of_the_slowest_rank() -> None:
    """Its longest call of next(), and the time until its first batch; an epoch without a batch has no calibration."""
    history = history_of("0,2 4,6 end r1:ask +1.5s r1:1,3 r1:5,7 r1:end", samples=8, batch=2, ranks=2)
    calibration = calibrate(history)
    assert 1.5 <= calibration.wait <= calibration.begin < 1.6
    assert calibrate(history_of("end", samples=1)).begin == 0


@pytest.mark.parametrize(("wait", "timeout"), [(0.0, 1.0), (0.4, 1.0), (0.6, 1.5), (1.1, 2.5), (100.0, 9.5)])
def test_a_timeout_is_as_long_as_a_start_needs(wait: float, timeout: float) -> None:
    """It is the requested timeout, unless a batch takes that long when nothing is wrong; and never too long for the deadline."""
    assert Calibration(0.0, wait).timeout(1.0, most=9.5) == timeout


@pytest.mark.parametrize(("excuses", "late"), [(0, 0), (1, 0), (9, 3)])
def test_a_trial_that_is_late_on_a_busy_machine_is_run_again_alone(
    excuses: int, late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure by the clock counts only if nothing ran at the same time; then it is confirmed like any other."""
    for number in range(excuses):
        (tmp_path / str(number)).touch()
    monkeypatch.setenv("HURRIED_EXCUSES", str(tmp_path))
    options = Options(workers=(1,), ranks=(1,), scenarios=("slow-read", "one-bad"))
    with Suite("tests.rogues.hurried:late", options, ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    failed = {verdict.check for verdict in report.verdicts if verdict.mark is Mark.FAIL}
    assert failed == ({"contract-kept"} if late else set())
    assert not {verdict.scenario for verdict in report.verdicts if verdict.mark is Mark.FAIL} - {"slow-read"}
    assert excuses - len(list(tmp_path.iterdir())) == (late or min(excuses, 1))
