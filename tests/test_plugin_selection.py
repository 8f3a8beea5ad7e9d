"""What one run of pytest runs: the suite, the user's own tests, or both; never fewer of the user's own than without badbatch."""

from __future__ import annotations

import itertools
import re

import pytest

LOADER = """
from torch.utils.data import DataLoader


def make(job):
    return DataLoader(job.dataset, batch_size=job.batch_size, num_workers=job.num_workers, drop_last=job.drop_last)
"""
FEW = {"workers": "0", "ranks": "1", "scenario": "clean", "check": "no-duplicates"}
SUITE = "badbatch::clean[workers=0]::no-duplicates"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a loader and three files of tests, one of them in a folder that ``testpaths`` may name."""
    pytester.makepyfile(loading=LOADER, test_a="def test_a(): pass", test_b="def test_b(): pass")
    pytester.mkdir("unit")
    (pytester.path / "unit" / "test_c.py").write_text("def test_c(): pass\n", encoding="utf-8")
    return pytester


def ran(project: pytest.Pytester, *arguments: str, ini: bool = False, testpaths: bool = False) -> set[str]:
    """The names of the tests that a run of pytest ran; those of the suite are one, ``suite``."""
    lines = ["[pytest]", *(f"loader_{name} = {value}" for name, value in FEW.items())]
    lines += ["loader = loading:make"] if ini else []
    lines += ["testpaths = unit"] if testpaths else []
    project.makeini("\n".join(lines))
    result = project.runpytest_subprocess("-v", "-p", "no:hypothesispytest", *arguments, timeout=100)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    found = re.findall(r"^(?:\[gw\d+\] \[ *\d+%\] PASSED (\S+)|(\S+) PASSED)", result.stdout.str(), re.MULTILINE)
    nodes = {first or second for first, second in found}
    return {"suite" if node == SUITE else node.rpartition("::")[2] for node in nodes}


@pytest.mark.parametrize(
    ("ini", "paths", "testpaths", "parallel"),
    [
        *((*given, False) for given in itertools.product([False, True], repeat=3)),
        *((*given, True, True) for given in itertools.product([False, True], repeat=2)),
    ],
)
def test_own_tests_always_run(
    project: pytest.Pytester, ini: bool, paths: bool, testpaths: bool, parallel: bool
) -> None:
    """The own tests run as without badbatch; the suite is added unless only paths are given and the loader is in the ini file."""
    if parallel:
        pytest.importorskip("xdist")
    arguments = () if ini else ("--loader", "loading:make")
    arguments += ("test_a.py",) if paths else ()
    arguments += ("-n", "1") if parallel else ()
    own = {"test_a"} if paths else {"test_c"} if testpaths else {"test_a", "test_b", "test_c"}
    suite = set() if ini and paths else {"suite"}
    assert own | suite == ran(project, *arguments, ini=ini, testpaths=testpaths)


def test_only_one_of_both(project: pytest.Pytester) -> None:
    """--loader-only runs only the suite, --loader-off only the own tests, and a node id of the suite only that node."""
    assert {"suite"} == ran(project, "--loader-only", ini=True, testpaths=True)
    assert {"test_c"} == ran(project, "--loader-off", ini=True, testpaths=True)
    assert {"suite"} == ran(project, SUITE, ini=True, testpaths=True)
    assert {"suite", "test_a"} == ran(project, SUITE, "test_a.py", ini=True, testpaths=True)


def test_only_one_of_both_in_parallel(project: pytest.Pytester) -> None:
    """With pytest-xdist it is the same."""
    pytest.importorskip("xdist")
    assert {"suite"} == ran(project, "--loader-only", "-n", "1", ini=True)
    assert {"suite", "test_a"} == ran(project, SUITE, "test_a.py", "-n", "1", ini=True)


def test_a_broken_test_of_ones_own_is_red(project: pytest.Pytester) -> None:
    """With the loader in the ini file, a failing test of the user's own fails a plain pytest."""
    project.makepyfile(test_a="def test_a(): assert False")
    project.makeini(
        "[pytest]\nloader = loading:make\n" + "\n".join(f"loader_{name} = {value}" for name, value in FEW.items())
    )
    result = project.runpytest_subprocess("-q", timeout=100)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED test_a.py::test_a*"])


def test_a_flag_in_the_settings_is_a_setting(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """--loader in PYTEST_ADDOPTS does not add the suite to the paths that a command line names."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--loader loading:make")
    assert {"test_a"} == ran(project, "test_a.py")
    assert {"suite", "test_c"} == ran(project, testpaths=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--loader-only",), "--loader-only: there is no loader"),
        (("--loader=loading:make", "--loader-only", "--loader-off"), "contradict each other"),
        (("--loader=loading:make", "--loader-only", "test_a.py"), "leave out test_a.py"),
        (("--loader=loading:make", "--loader-off", SUITE), f"leave out {SUITE}"),
    ],
)
def test_contradictions_are_refused(project: pytest.Pytester, arguments: tuple[str, ...], said: str) -> None:
    """Options that contradict each other are refused in one line."""
    result = project.runpytest_subprocess(*arguments, timeout=100)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR")]
    assert len(errors) == 1
    assert said in errors[0]
