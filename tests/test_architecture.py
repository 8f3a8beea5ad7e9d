"""The shape of the code: what may import what, and that everything with a public name says what it is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from badbatch.conformance import diagnoses
from badbatch.conformance.checks import registry as checks
from badbatch.conformance.scenarios import disk as disk_scenarios
from badbatch.conformance.scenarios import memory
from badbatch.conformance.scenarios.base import Scenario
from badbatch.harness.faults import registry as faults
from test_imports import circles

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted([*ROOT.glob("harness/**/*.py"), *ROOT.glob("conformance/**/*.py")])
OUTSIDE = ("harness/instrumentation/sitecustomize.py",)  # run by any interpreter that a loader starts, not as a part of the package
NOWHERE_ELSE = {"utils", "util", "common", "helpers", "helper", "misc", "tools"}
JUDGES = ("conformance/checks/", "conformance/diagnoses/", "conformance/judging/expectation.py", "conformance/judging/ledger.py")
IMPURE = {"os", "time", "random", "subprocess", "multiprocessing", "threading", "socket", "signal", "shutil", "tempfile", "datetime",
          "torch", "psutil"}
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def name_of(path: Path) -> str:
    """A module's path as this file writes it: ``harness/trial/spec.py``."""
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """The dotted names that a module imports, at any depth, relative ones resolved from the repository's root."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_within_the_packages_are_relative(path: Path) -> None:
    """No module imports badbatch by its installed name. The directions of imports are tested in test_imports.py."""
    names = set(imported(path))
    assert name_of(path) in OUTSIDE or not {name for name in names if name.split(".")[0] == "badbatch"}


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path).startswith(JUDGES)], ids=name_of)
def test_what_judges_is_pure(path: Path) -> None:
    """Everything to the right of a history starts no process, reads no clock and no file, and mentions no library's code."""
    roots = {name.split(".")[0] for name in imported(path)}
    assert not roots & IMPURE
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & {"open", "print", "input", "exec", "eval"}


def test_the_two_lists_above_are_not_empty() -> None:
    """The walk finds the modules that it is about."""
    names = {name_of(path) for path in MODULES}
    assert {"harness/trial/consumer.py", "conformance/judging/ledger.py", "conformance/checks/arrival.py"} <= names


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_is_a_drawer(path: Path) -> None:
    """No module has a name under which anything could be put, and each begins with a word on what is in it."""
    assert not set(path.with_suffix("").relative_to(ROOT).parts) & NOWHERE_ELSE
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "the module says nothing of itself"


@pytest.mark.parametrize("check", checks().values(), ids=lambda check: check.id)
def test_every_check_says_what_it_is_for(check: object) -> None:
    """A check has a readable id, a title, a reason to care, a source of its rule, and a docstring."""
    for field in ("title", "why", "source"):
        assert len(getattr(check, field).split()) > 2, field
    assert KEBAB.fullmatch(check.id)  # type: ignore[attr-defined]
    assert check.function.__doc__  # type: ignore[attr-defined]


@pytest.mark.parametrize("scenario", [*memory.SCENARIOS, *disk_scenarios.SCENARIOS], ids=lambda scenario: scenario.name)
def test_every_scenario_says_why_it_matters(scenario: Scenario) -> None:
    """A scenario has a readable name and one sentence or two on why it matters."""
    assert KEBAB.fullmatch(scenario.name)
    assert scenario.why.endswith(".")
    assert len(scenario.why.split()) > 3


def test_scenarios_have_names_of_their_own() -> None:
    """No two scenarios in memory share a name, and no two on disk."""
    for table in (memory.SCENARIOS, disk_scenarios.SCENARIOS):
        assert len({scenario.name for scenario in table}) == len(table)


@pytest.mark.parametrize("entry", diagnoses.registry().values(), ids=lambda entry: entry.id)
def test_every_diagnosis_says_the_cause_and_the_fix(entry: object) -> None:
    """A diagnosis has a readable id, one sentence on the cause and one on the fix."""
    assert KEBAB.fullmatch(entry.id)  # type: ignore[attr-defined]
    for field in ("cause", "fix"):
        sentence = getattr(entry, field)
        assert sentence[0].isupper() or sentence.startswith(("job.", "len()", "drop_last")), field
        assert sentence.endswith("."), field
        assert ". " not in sentence, f"{field} is more than one sentence"
        assert len(sentence.split()) > 4, field


@pytest.mark.parametrize("kind", list(faults()))
def test_every_fault_says_what_it_is(kind: str) -> None:
    """A fault has a readable kind, and its docstring begins with a title."""
    assert KEBAB.fullmatch(kind)
    assert (faults()[kind].__doc__ or "").strip().splitlines()[0]


def test_consequences_are_checks_and_go_round_in_no_circle() -> None:
    """Every check in the table of consequences exists, and none explains itself, also not through others."""
    known = set(checks())
    implied = {name: frozenset(check.implies) for name, check in checks().items()}
    assert known >= frozenset().union(*implied.values())
    assert circles(implied) == []


def test_only_sources_ask_which_source_it_is() -> None:
    """Everything special about a source is in its module: no other module asks whether it is in memory or on disk."""
    asks = re.compile(r"stored is (not )?None|\bsource (==|!=|in|not in) \(?[\"'][a-z]|sources\.base import .*(in_memory|on_disk)")
    # The scenarios in memory apply to the sources in memory; the glossary has a table of each.
    allowed = {"conformance/scenarios/base.py", "conformance/commands/glossary.py"}
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("harness", "conformance")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ROOT / "harness/sources" not in path.parents and str(path.relative_to(ROOT)) not in allowed
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asks.search(line)
    ]
    assert found == []
