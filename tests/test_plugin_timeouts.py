"""The suite with pytest-timeout: its default does not apply, a given time does, and report and pytest agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options

pytest.importorskip("pytest_timeout")
LOADER = """
from badbatch.harness import loader
from torch.utils.data import DataLoader


@loader(sources=("map",))
def make(job):
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers, timeout=job.timeout if job.num_workers else 0)


@loader(sources=("map",), on_damage="raise", timeout=True)
def deaf(job):  # to the job's timeout
    return DataLoader(job.dataset, job.batch_size, num_workers=job.num_workers)
"""
FEW = ("--loader-workers=2", "--loader-ranks=1", "--loader-scenario=clean")
HUNG = "badbatch::hung-read[workers=2]"


def run(pytester: pytest.Pytester, loader: str, *arguments: str, scenario: str = "hung-read") -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run the suite; the result, and the report as it was written."""
    pytester.makepyfile(mine=LOADER)
    given = ("--loader", f"mine:{loader}", "--loader-only", "--loader-json", "report.json", *FEW, *arguments)
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", *given, f"--loader-scenario={scenario}", timeout=100)
    data = json.loads(Path(pytester.path / "report.json").read_text(encoding="utf-8"))
    counts = {word: number for word, number in result.parseoutcomes().items() if word not in ("warnings", "warning")}
    summary = {word: data["summary"][word] for word in ("pass", "fail", "inconclusive", "n/a", "known")}
    told = {"pass": counts.get("passed", 0), "fail": counts.get("failed", 0)}
    told |= {word: counts.get(word, 0) for word in ("inconclusive", "known", "n/a")}
    assert summary | {"n/a": 0} == told | {"n/a": 0}, result.stdout.str()  # parseoutcomes() does not know a word with a slash
    return result, data


def reasons(data: dict[str, Any], scenario: str) -> set[str]:
    """Why verdicts of a scenario are inconclusive."""
    return {v["reason"] for v in data["verdicts"] if v["scenario"] == scenario and v["verdict"] == "inconclusive"}


@pytest.mark.parametrize("more", [(), ("-p", "no:timeout"), ("-n", "1")], ids=["default", "without", "xdist"])
def test_the_default_does_not_apply(pytester: pytest.Pytester, more: tuple[str, ...]) -> None:
    """A timeout in the ini file that every trial exceeds changes nothing; nor does it matter whether pytest-timeout is there."""
    if "-n" in more:
        pytest.importorskip("xdist")
    pytester.makeini("[pytest]\ntimeout = 0.01\n" if "no:timeout" not in more else "[pytest]\n")
    result, data = run(pytester, "make", "--loader-check=finite-epoch", *more, scenario="one-bad")
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    assert data["summary"]["pass"] == 2


@pytest.mark.parametrize("more", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_typed_timeout_cuts_the_trial(pytester: pytest.Pytester, more: tuple[str, ...]) -> None:
    """--timeout ends a trial that hangs: its checks are inconclusive, for pytest and in the report, and the run is not green."""
    if "-n" in more:
        pytest.importorskip("xdist")
    result, data = run(pytester, "deaf", "--timeout=6", "--loader-deadline=60", *more)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert data["summary"]["fail"] == 0
    assert reasons(data, "hung-read") == {"not run to its end: a timeout of 6 s, given to pytest, ended it"}
    (trial,) = [trial for trial in data["trials"] if trial["scenario"] == "hung-read"]
    assert trial["ended"] == "cut"
    assert "Timeout" not in result.stdout.str()


def test_a_marker_of_the_users_cuts_the_trial(pytester: pytest.Pytester) -> None:
    """A marker from the user's conftest is respected too, and only for the items that have it."""
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if "hung-read" in item.nodeid:
                    item.add_marker(pytest.mark.timeout(2))
        """
    )
    result, data = run(pytester, "deaf", "--loader-deadline=60")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert reasons(data, "hung-read") == {"not run to its end: a timeout of 2 s, given to pytest, ended it"}
    assert reasons(data, "clean") == set()


def test_a_clean_trial_that_is_cut_decides_nothing(tmp_path: Path) -> None:
    """Where even the clean trial is cut, what waits for it is run and inconclusive, and the run ends."""
    (tmp_path / "mine.py").write_text(LOADER, encoding="utf-8")
    options = Options(workers=(2,), ranks=(1,), scenarios=("clean", "one-bad"), checks=("finite-epoch",))
    with Suite("mine:make", options, tmp_path) as suite:
        suite.start()
        suite.prepare()
        suite.cut(suite.specs()[0], "for the test")
        report = suite.run()
    found = {verdict.scenario: (verdict.mark, verdict.reason) for verdict in report.verdicts}
    why = "the clean scenario has no result in this topology: for the test"
    assert found == {"clean": (Mark.INCONCLUSIVE, "not run: for the test"), "one-bad": (Mark.INCONCLUSIVE, why)}


def test_the_backstop_ends_a_run_and_leaves_stacks(pytester: pytest.Pytester) -> None:
    """Where no trial ends for too long, the run ends with a report, and the report has the stacks of pytest's threads."""
    pytester.makeconftest(
        """
        from badbatch.conformance.pytest import timeouts

        timeouts.backstop_s = lambda options: 4.0
        """
    )
    result, data = run(pytester, "deaf", "--loader-deadline=60")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (reason,) = reasons(data, "hung-read")
    assert "made no progress" in reason
    notes = "\n".join(data["notes"])
    assert f"pytest waited for {HUNG}::" in notes
    assert "in runtest" in notes
    assert data["summary"]["fail"] == 0
