"""A known file that is written from a run stays true where the outcome of a worker's death differs from run to run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from badbatch.conformance import known
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.engine.trial_state import merge
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.conformance.options import Options
from badbatch.conformance.report import files
from badbatch.conformance.report.model import Report
from badbatch.harness.trial.spec import Topology
from example_report import report as example
from trials import ROOT

VARYING = "tests.rogues.varying:varying"
CHOSEN = Options(workers=(2,), ranks=(1,), scenarios=("segfault", "killed", "exit"), deadline=8.0)


def ran(options: Options) -> Report:
    """A run over the loader that varies."""
    with Suite(VARYING, options, ROOT) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def written(path: Path, report: Report) -> list[known.Known]:
    """The entries that are written from a report, with their reasons filled in."""
    files.write("write-known", path, [report])
    path.write_text(path.read_text("utf-8").replace(known.PLACEHOLDER, "so it is"), "utf-8")
    return known.load(path)


@pytest.mark.timeout(300)
def test_one_run_writes_what_excuses_every_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file holds in run after run of a loader that hangs, ends quietly or drops a batch after a death."""
    monkeypatch.setenv("VARYING", str(tmp_path / "count"))
    first = ran(CHOSEN)
    entries = written(tmp_path / "new.toml", first)
    assert {entry.flaky for entry in entries} == {True}
    assert {entry.scenario for entry in entries} == {"segfault", "killed", "exit"}
    failed = [frozenset(v.check for v in first.verdicts if v.mark is Mark.FAIL)]
    for _ in range(3):
        again = ran(dataclasses.replace(CHOSEN, known=(str(tmp_path / "new.toml"),)))
        assert again.ok, again
        failed.append(frozenset(v.check for v in again.verdicts if v.mark is Mark.KNOWN))
    assert frozenset.union(*failed) >= {"finite-epoch", "no-lost-batches", "crash-surfaces"}


def death(scenario: str, check: str, mark: Mark = Mark.FAIL, workers: int = 2, **more: object) -> Verdict:
    """A verdict after the death of a worker."""
    verdict = Verdict("pkg:load", scenario, "map", Topology(workers), check, mark, "promised", "happened")
    return dataclasses.replace(verdict, **more)  # type: ignore[arg-type]


def entries_of(tmp_path: Path, *verdicts: Verdict) -> set[tuple[str, str, str, bool]]:
    """What is written from these verdicts: (check, scenario, topology, flaky)."""
    report = dataclasses.replace(example(), loader="pkg:load", verdicts=tuple(verdicts))
    return {(e.check, e.scenario, e.topology, e.flaky) for e in written(tmp_path / "new.toml", report)}


def test_what_fails_the_same_way_each_time_is_written_as_it_is(tmp_path: Path) -> None:
    """A loader that always loses the batches of a dead worker gets an entry that becomes stale when it is fixed."""
    found = entries_of(
        tmp_path,
        death("segfault", "no-lost-batches"),
        death("killed", "no-lost-batches"),
        death("killed", "finite-epoch", Mark.PASS),
        death("exit-zero", "crash-surfaces"),  # it treats this death in another way, but always in the same
    )
    assert found == {
        ("no-lost-batches", "segfault", "workers=2", False),
        ("no-lost-batches", "killed", "workers=2", False),
        ("crash-surfaces", "exit-zero", "workers=2", False),
    }


@pytest.mark.parametrize("how", ["in the runs of one trial", "after one signal and another"])
def test_what_differs_is_one_entry_over_all_deaths(how: str, tmp_path: Path) -> None:
    """It covers the checks of deaths that were applied, and no other check and no other scenario."""
    flaky = (1, 2) if how == "in the runs of one trial" else None
    found = entries_of(
        tmp_path,
        death("segfault", "no-lost-batches", flaky=flaky),
        death("segfault", "crash-surfaces", Mark.PASS),
        death("killed", "no-lost-batches", Mark.PASS),
        death("killed", "error-names-sample"),
        death("killed", "no-leftovers", Mark.NA),
        death("one-bad", "no-lost-batches"),
    )
    assert found == {
        *(("no-lost-batches", scenario, "workers=2", True) for scenario in ("segfault", "killed")),
        *(("crash-surfaces", scenario, "workers=2", True) for scenario in ("segfault", "killed")),
        ("error-names-sample", "killed", "workers=2", False),
        ("no-lost-batches", "one-bad", "workers=2", False),
    }


def test_a_failure_that_also_occurs_without_its_cause_stands_for_itself() -> None:
    """A hang explains what is lost in its run, but not what is lost in another run without a hang."""
    hang, held = death("killed", "finite-epoch"), death("killed", "finite-epoch", Mark.PASS)
    follows, alone = death("killed", "no-lost-batches", cause="finite-epoch"), death("killed", "no-lost-batches")
    merged = {verdict.check: verdict for verdict in merge([[hang, follows], [held, alone]])}
    assert merged["finite-epoch"].flaky == (1, 2)
    assert merged["no-lost-batches"].cause == ""
    assert {verdict.cause for verdict in merge([[hang, follows], [hang, follows]])} == {"", "finite-epoch"}
