"""How a suite schedules relations: which trials it adds, what it runs again, and what it says where a trial is missing."""

from __future__ import annotations

import collections
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from badbatch.conformance.commands import cli
from badbatch.conformance.engine.claims import Claims
from badbatch.conformance.engine.pool import Pool
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.engine.tasks import Task
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.conformance.options import Options
from badbatch.conformance.report.model import Report
from badbatch.conformance.scenarios import quick
from badbatch.harness.trial.spec import TrialSpec
from history_dsl import RAISES
from trials import ROOT

LAW = "worker-count-invariant"
HONEST = "fixtures.loaders.honest:processes_exact"
ROUNDED_DOWN = "fixtures.loaders.liars_counts:rounded_down"
REMAINDER_FIRST = "fixtures.loaders.liars_counts:remainder_first"
DIFFERS_AT_TIMES = "tests.rogues.differing:differs"
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the trials that are begun, probes included."""
    submit, found = Pool.submit, []

    def submitted(pool: Pool, task: Task) -> None:
        begin = task.begin

        def noted() -> TrialSpec | None:
            spec = begin()
            if spec is not None:
                found.append(spec.id.partition("#")[0])
            return spec

        task.begin = noted
        submit(pool, task)

    monkeypatch.setattr(Pool, "submit", submitted)
    return found


def options(*scenarios: str, workers: tuple[int, ...] = (0, 2), **more: Any) -> Options:
    """One rank, and these scenarios."""
    return Options(scenarios=scenarios, workers=workers, **{"ranks": (1,), **more})


def run(loader: str, chosen: Options, **more: Any) -> Report:
    """The report of a whole suite."""
    with Suite(loader, chosen, ROOT, **more) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def of_relation(report: Report) -> list[Verdict]:
    """The verdicts of the relation."""
    return [verdict for verdict in report.verdicts if verdict.check == LAW]


def laid_out(chosen: Options, **contract: Any) -> Iterator[tuple[Suite, set[str]]]:
    """A suite that runs nothing, and the ids of the trials that it would add."""
    with Suite("nowhere:loader", chosen) as suite:
        suite.lay_out(["map"], lambda source: dataclasses.replace(RAISES, **contract))
        yield suite, set(suite._relations.added)


def test_trials_that_run_anyway_are_not_run_again(begun: list[str]) -> None:
    """The relation is judged on the trials of the two topologies; the further numbers of workers are added in few scenarios."""
    report = run(HONEST, options("drop-last", "tiny"))
    assert {(v.trial, v.mark) for v in of_relation(report)} == {
        (f"{scenario}[workers=2{source}]", Mark.PASS) for scenario in ("drop-last", "tiny") for source in ("", ",source=stream")
    }
    of_map = [name for name in begun if "source" not in name and name.startswith(("drop-last", "tiny"))]  # no probe, no gate
    assert collections.Counter(of_map) == dict.fromkeys(
        ["drop-last[workers=0]", "drop-last[workers=2]", "tiny[workers=0]", "tiny[workers=2]", "tiny[workers=4]"], 1
    )
    assert {trial.spec.topology.workers for trial in report.trials} == {0, 2}


def test_a_trial_that_is_not_selected_is_added(begun: list[str]) -> None:
    """Its checks are no part of the report; the clean trial of its cell decides what it is worth."""
    report = run("fixtures.loaders.honest:map_raise", options("first-bad", workers=(2,)))
    assert [(v.trial, v.mark, v.trials) for v in of_relation(report)] == [
        ("first-bad[workers=2]", Mark.PASS, (("workers", "first-bad[workers=2]"), ("reference", "first-bad[workers=0]")))
    ]
    assert [trial.spec.id for trial in report.trials] == ["first-bad[workers=2]"]
    assert {"first-bad[workers=0]", "clean[workers=0]", "clean[workers=2]"} <= set(begun)


@pytest.mark.parametrize(
    ("chosen", "added"),
    [
        (options("shuffled", workers=(2,)), {"shuffled[workers=0]", "shuffled[workers=2]#1"}),
        (options("shuffled", workers=(2,), not_checks=(LAW,)), {"shuffled[workers=2]#1"}),
        (options("shuffled", workers=(2,), not_checks=(LAW, "seeded-order")), set()),
        (options("shuffled", workers=(2,), checks=("no-duplicates",)), set()),
        (options("shuffled", workers=(0,)), {"shuffled[workers=0]#1"}),
        (options("shuffled", "segfault", "hung-read", workers=(0, 2)), {"shuffled[workers=0]#1", "shuffled[workers=2]#1"}),
        (options("clean", workers=(0, 2)), {"clean[workers=1]", "clean[workers=3]"}),
        (Options(quick=True), {f"{name}[workers=0,ranks=2]" for name in quick.RELATED}),
    ],
)
def test_which_trials_are_added(chosen: Options, added: set[str]) -> None:
    """Those that a selected relation needs and no option selects; with --quick in one scenario only."""
    for _, found in laid_out(chosen):
        assert found == added


def test_what_the_contract_rules_out_is_not_added() -> None:
    """A loader that declares its numbers of workers is compared with the fewest of them."""
    for suite, found in laid_out(options("clean", workers=(1, 2)), workers=(1, 2)):
        assert found == set()
        asked = {spec.id: LAW in suite.checks_for(spec) for spec in suite.specs()}
        assert asked == {"clean[workers=1]": False, "clean[workers=2]": True}
        assert all(suite.checks_for(spec).count(LAW) <= 1 for spec in suite.specs())


def test_a_trial_that_cannot_be_run_makes_the_relation_not_applicable() -> None:
    """The reason is that of the other trial, which is named; what the checks say stays."""
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last"), ROOT) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        suite._trials[without].absent = Mark.NA, "the loader declares workers=(2,)"
        suite._trials._settle_absent()
        verdicts = {verdict.check: verdict for verdict in suite.result(workers).verdicts}
    assert (verdicts[LAW].mark, verdicts[LAW].reason) == (Mark.NA, "drop-last[workers=0]: the loader declares workers=(2,)")
    assert verdicts[LAW].trials == (("workers", "drop-last[workers=2]"), ("reference", "drop-last[workers=0]"))
    assert verdicts["no-lost-batches"].mark is Mark.PASS


@pytest.mark.parametrize("who", ["without workers", "with workers"])
def test_a_trial_that_is_lost_makes_the_relation_inconclusive(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose trial supervisor is killed each time it runs; the reason names it, and the other trial keeps its verdicts."""
    monkeypatch.setenv("LOST", str(int(who == "without workers")))
    with Suite("tests.rogues.disturbed:lost_by_workers", options("drop-last"), ROOT) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        verdicts = {verdict.check: verdict for verdict in suite.result(workers).verdicts}
        other = {verdict.check: verdict for verdict in suite.result(without).verdicts}
    lost, kept = (other, verdicts) if who == "without workers" else (verdicts, other)
    where = "drop-last[workers=0]: " if who == "without workers" else ""
    assert (verdicts[LAW].mark, verdicts[LAW].reason) == (Mark.INCONCLUSIVE, f"{where}the trial was lost")
    assert lost["no-lost-batches"].mark is Mark.INCONCLUSIVE
    assert kept["no-lost-batches"].mark is Mark.PASS


def test_a_relation_alone_is_judged(begun: list[str], tmp_path: Path) -> None:
    """With no other check selected its trials run, the failure is confirmed and kept, and no other verdict is reported."""
    report = run(REMAINDER_FIRST, options("drop-last", checks=(LAW,)), failures=tmp_path)
    assert [(v.trial, v.check, v.mark) for v in report.verdicts] == [("drop-last[workers=2]", LAW, Mark.FAIL)]
    assert collections.Counter(name for name in begun if name.startswith("drop-last")) == {
        "drop-last[workers=0]": 2, "drop-last[workers=2]": 2,
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [f"drop-last-w2-{LAW}"]


def test_pytest_judges_a_relation_alone_in_several_processes(tmp_path: Path) -> None:
    """With ``--loader-check`` and pytest-xdist there is one item, which fails, and the folder that it names has both trials."""
    pytest.importorskip("xdist")
    kept = tmp_path / "kept"
    command = [
        *(sys.executable, "-m", "pytest", "--loader", REMAINDER_FIRST, "--loader-only", "--loader-check", LAW),
        *("--loader-scenario", "drop-last", "--loader-ranks", "1", "--loader-keep", str(kept)),
        *("-n", "2", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert "1 failed" in done.stdout.splitlines()[-1], done.stdout + done.stderr
    assert "2 samples that arrived without workers never arrived, and 2 others did in their place" in " ".join(done.stdout.split())
    [folder] = kept.rglob("relation.json")
    assert {path.name for path in folder.parent.iterdir()} == {"relation.json", "workers", "reference"}
    assert folder.parent.name in "".join(done.stdout.split())  # its path may be relative, and is broken into lines


def test_a_failure_is_confirmed_on_new_runs_and_kept(tmp_path: Path, begun: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All trials run once more; their records are kept in one folder, which is judged and run again as a whole."""
    report = run(ROUNDED_DOWN, options("clean"), failures=tmp_path)
    [found] = of_relation(report)
    assert (found.mark, found.flaky, found.lost, found.diagnosis and found.diagnosis.id) == (
        Mark.FAIL, None, (39,), "share-rounded-down",
    )  # fmt: skip
    assert collections.Counter(begun)["clean[workers=2]"] == 2
    assert collections.Counter(begun)["clean[workers=1]"] == 2
    assert "clean[workers=3] breaks no-lost-batches as well" in found.reason
    assert [v.check for v in report.verdicts if v.mark is Mark.FAIL] == [LAW]
    folder = tmp_path / "clean-w2-worker-count-invariant"
    assert {path.name for path in folder.iterdir()} == {"relation.json", "workers", "reference", "second", "third"}
    assert str(folder.name) in found.replay
    assert not (tmp_path / "clean-w3").exists()

    again = tmp_path / "again"
    for command in (["judge", str(folder)], ["replay", str(folder), "--keep", str(again)], ["judge", str(again / "relation.json")]):
        assert cli._run(command) == 1
        printed = capsys.readouterr().out
        assert "with 3 workers the samples arrive that arrive without workers" in printed
        assert "compared   workers clean[workers=2], reference clean[workers=0]" in printed
        assert "because    clean[workers=3] breaks no-lost-batches as well" in printed
    assert cli._run(["judge", str(folder / "third"), "-q"]) == 1
    assert cli._run(["replay", str(folder), "--keep", str(again)]) == 2
    assert "is not empty: give a new folder for the records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "relation.json cannot be read"),
        ('{"badbatch_relation": 9}', "is no relation of format 1"),
        ('{"badbatch_relation": 1, "relation": "worker-count", "roles": ["a"]}', "worker-count-invariant"),
        ('{"badbatch_relation": 1, "relation": "no-duplicates", "roles": ["a"]}', "is no relation that this badbatch knows"),
        ('{"badbatch_relation": 1, "relation": "worker-count-invariant", "roles": ["workers"]}', "is no trial"),
    ],
)
def test_a_damaged_relation_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    """What is wrong with the file, with exit code 2."""
    (tmp_path / "relation.json").write_text(text, encoding="utf-8")
    assert cli._run(["judge", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1


def test_a_difference_that_comes_and_goes_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relation that fails once and holds when its trials run again says how often it failed."""
    (tmp_path / "excuse").touch()
    monkeypatch.setenv("DIFFERS", str(tmp_path))
    [found] = of_relation(run(DIFFERS_AT_TIMES, options("drop-last")))
    assert (found.mark, found.flaky) == (Mark.FAIL, (1, 2))


def test_a_known_failure_of_an_added_trial_excuses_the_relation(tmp_path: Path) -> None:
    """The report does not show the trial with three workers, and its failure is still known."""
    known = tmp_path / "known.toml"
    known.write_text(
        '[[known]]\ncheck = "no-lost-batches"\nscenario = "clean"\ntopology = "workers=3"\nreason = "we never use three"\n',
        encoding="utf-8",
    )
    report = run(ROUNDED_DOWN, options("clean", known=(str(known),)))
    [found] = of_relation(report)
    assert (found.mark, found.reason) == (
        Mark.KNOWN, "follows from no-lost-batches in clean[workers=3]: we never use three",
    )  # fmt: skip
    assert report.stale_known == ()


@pytest.mark.parametrize(("loader", "mark", "stale"), [("liars_counts:remainder_first", Mark.KNOWN, 0), ("honest:map_raise", Mark.PASS, 1)])
def test_a_known_failure_of_a_relation(tmp_path: Path, loader: str, mark: Mark, stale: int) -> None:
    """An entry excuses the relation like a check, and is stale where the relation holds."""
    known = tmp_path / "known.toml"
    known.write_text(
        f'[[known]]\ncheck = "{LAW}"\nscenario = "drop-last"\ntopology = "workers=2"\nreason = "we know"\n', encoding="utf-8"
    )
    report = run(f"fixtures.loaders.{loader}", options("drop-last", known=(str(known),)))
    assert [found.mark for found in of_relation(report)] == [mark]
    assert len(report.stale_known) == stale


def test_repetitions_are_compared_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[str]) -> None:
    """With --repeat each run of a trial is compared with the run of the same number of the other, and none is run again."""
    (tmp_path / "excuse").touch()
    monkeypatch.setenv("DIFFERS", str(tmp_path))
    [found] = of_relation(run(DIFFERS_AT_TIMES, options("drop-last", repeat=2, checks=(LAW,))))
    assert (found.mark, found.flaky) == (Mark.FAIL, (1, 2))
    assert begun.count("drop-last[workers=0]") == begun.count("drop-last[workers=2]") == 2


def test_nothing_is_kept_of_trials_that_no_relation_waits_for() -> None:
    """When the suite has ended, neither histories nor records are held."""
    with Suite(HONEST, options("tiny", "remainder-one"), ROOT) as suite:
        suite.start()
        suite.prepare()
        suite.run()
        states = [*suite._trials, *suite._relations.added.values()]
        assert [state.spec.id for state in states if state.runs or state.records] == []
        assert not [path for path in suite._pool.scratch.iterdir() if path.name[:5].isdigit()]


def test_a_trial_that_was_cut_makes_the_relation_inconclusive() -> None:
    """What the checks of the other trial say stays."""
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last"), ROOT) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        suite.cut(without, "a test ended it")
        verdicts = {verdict.check: verdict for verdict in suite.result(workers).verdicts}
    assert verdicts["no-lost-batches"].mark is Mark.PASS
    assert verdicts[LAW].mark is Mark.INCONCLUSIVE
    assert verdicts[LAW].reason == "drop-last[workers=0]: not run: a test ended it"


def test_an_interrupted_run_reports_what_its_checks_say() -> None:
    """A trial whose relation still waits has its other verdicts; the relation is inconclusive."""
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last"), ROOT) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        suite._trials[without].elsewhere = True  # it never ends
        while suite._trials[workers].own is None:
            suite._advance()
        report = suite.so_far(interrupted=True)
    assert [trial.spec.id for trial in report.trials] == [workers.id]
    assert {v.mark for v in report.verdicts if v.check != LAW} <= {Mark.PASS, Mark.NA}
    [found] = of_relation(report)
    assert (found.mark, found.reason) == (Mark.INCONCLUSIVE, "not every trial was run to its end: interrupted")


def test_records_are_shared_between_processes(tmp_path_factory: pytest.TempPathFactory, begun: list[str]) -> None:
    """One process runs the trial without workers, another the trial with workers: the latter judges the relation."""
    shared = tmp_path_factory.mktemp("shared")
    chosen = options("drop-last", checks=(LAW, "no-lost-batches"))
    with Suite(REMAINDER_FIRST, chosen, ROOT, shared=shared) as one, Suite(REMAINDER_FIRST, chosen, ROOT, shared=shared) as other:
        for suite in (one, other):
            suite.start()
            suite.prepare()
        without, workers = one.specs()
        assert other._exchange.runs_here(other._trials[workers])
        one.result(without)
        assert without.id in begun and workers.id not in begun
        del begun[:]
        [found] = [verdict for verdict in other.result(workers).verdicts if verdict.check == LAW]
        assert begun.count(without.id) == 1  # to confirm the failure, and not to see it
        assert begun.count(workers.id) == 2
        [told] = [verdict for verdict in one.result(workers).verdicts if verdict.check == LAW]
    assert (found.mark, found.flaky, told) == (Mark.FAIL, None, found)


def test_a_process_that_died_with_a_record_is_not_waited_for(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process claimed the trial without workers and died: it is run here."""
    shared = tmp_path_factory.mktemp("shared")
    monkeypatch.setattr(Claims, "overdue", lambda self, spec, runs: True)
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last"), ROOT, shared=shared) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        assert Claims(shared).claim(without)
        found = {verdict.check: verdict.mark for verdict in suite.result(workers).verdicts}
    assert found[LAW] is Mark.PASS


def test_only_wanted_relations_have_their_trials_run(begun: list[str]) -> None:
    """Where a check alone is asked for, as by a node id of pytest, no trial is added for the relation."""
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last", workers=(2,)), ROOT) as suite:
        suite.start()
        suite.prepare()
        del begun[:]
        [spec] = suite.specs()
        suite.only({(spec.id, "no-lost-batches")})
        assert LAW not in {verdict.check for verdict in suite.result(spec).verdicts}
    assert set(begun) == {"clean[workers=2]", spec.id}


def test_an_error_while_a_relation_is_judged_loses_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised, the relation is inconclusive, and what the checks of both trials say stays."""
    with Suite("fixtures.loaders.honest:map_raise", options("drop-last"), ROOT) as suite:
        suite.start()
        suite.prepare()
        without, workers = suite.specs()
        monkeypatch.setattr(suite._relations, "_judge", _fails)
        with pytest.raises(ZeroDivisionError, match="ours"):
            suite.run()
        verdicts = {verdict.check: verdict for verdict in suite.result(workers).verdicts}
        assert suite.result(without).ended == "ended"
    assert verdicts["no-lost-batches"].mark is Mark.PASS
    assert (verdicts[LAW].mark, verdicts[LAW].reason) == (
        Mark.INCONCLUSIVE,
        "not every trial was run to its end: comparing it was ended by ZeroDivisionError: ours",
    )


def _fails(*arguments: object) -> None:
    raise ZeroDivisionError("ours")
