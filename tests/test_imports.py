"""Imports go one way: no circle between modules, and the folders have one order, harness below conformance."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ORDER = (
    "harness/articles.py",
    "harness/errors.py",
    "harness/exit_codes.py",
    "harness/nearest.py",
    "harness/plain.py",
    "harness/plugins.py",
    "harness/stopping.py",
    "harness/contract",
    "harness/identity",
    "harness/faults",
    "harness/plan.py",
    "harness/strategies.py",
    "harness/corpus",
    "harness/trial",
    "harness/instrumentation",
    "harness/sources",
    "harness/processes",
    "harness/__init__.py",
    "conformance/judging",
    "conformance/checks",
    "conformance/scenarios",
    "conformance/diagnoses",
    "conformance/known",
    "conformance/report",
    "conformance/options",
    "conformance/engine",
    "conformance/commands",
    "conformance/pytest",
    "conformance/__init__.py",
    "conformance/__main__.py",
)
"""A module imports what is in its own folder or in one above it in this list, and nothing below it."""

Graph = Mapping[str, frozenset[str]]


def dotted(path: Path) -> str:
    """``harness/trial/spec.py`` is ``harness.trial.spec``; a folder's ``__init__.py`` has the folder's name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the two packages, by its dotted name."""
    return {dotted(path): path for package in ("harness", "conformance") for path in sorted(ROOT.glob(f"{package}/**/*.py"))}


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees; the bodies of functions, where imports are lazy, are among them."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            todo += node.orelse
            continue
        yield node
        todo += ast.iter_child_nodes(node)


def imported(path: Path) -> Iterator[str]:
    """The modules of the two packages that a module imports, at its top or within a function."""
    package = path.relative_to(ROOT).parent.parts
    for node in executed(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.removeprefix("badbatch.") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part).removeprefix("badbatch.")
            names = [f"{module}.{alias.name}" if f"{module}.{alias.name}" in modules() else module for alias in node.names]
        else:
            continue
        yield from (name for name in names if name in modules() and name != dotted(path))


@functools.cache
def graph() -> Graph:
    """From each module to those that it imports."""
    return {name: frozenset(imported(path)) for name, path in modules().items()}


def circles(edges: Graph) -> list[list[str]]:
    """The strongly connected components of more than one node, and nodes that lead to themselves (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        path.append(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
            if other in path:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            component = path[path.index(node) :]
            del path[path.index(node) :]
            if len(component) > 1 or node in edges[node]:
                found.append(sorted(component))

    for node in edges:
        if node not in index:
            visit(node)
    return sorted(found)


def place(name: str) -> str:
    """The entry of the order to which a module belongs."""
    parts = modules()[name].relative_to(ROOT).parts
    return "/".join(parts[:2])


def backward() -> dict[tuple[str, str], list[str]]:
    """The arrows between folders that point against the order, each with the imports that it is made of."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, others in graph().items():
        for other in others:
            if ORDER.index(place(name)) < ORDER.index(place(other)):
                found.setdefault((place(name), place(other)), []).append(f"{name} imports {other}")
    return found


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"a"}}, [["a"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}, [["a", "b", "c"]]),
        ({"a": {"b"}, "b": {"a"}, "c": {"d", "a"}, "d": {"c"}}, [["a", "b"], ["c", "d"]]),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, []),
    ],
)
def test_circles_are_found(edges: dict[str, set[str]], expected: list[list[str]]) -> None:
    """Short and long ones, several at once; two ways to one module are not a circle."""
    assert circles({node: frozenset(others) for node, others in edges.items()}) == expected


def test_lazy_imports_count_and_those_for_the_type_checker_do_not() -> None:
    """The graph contains imports inside functions, but not those that are only for annotations."""
    assert "harness.processes.offer" in graph()["harness.processes.rank"]  # within become()
    assert "harness.trial.event_log" in graph()["harness.instrumentation.opens"]
    tree = ast.parse("if TYPE_CHECKING:\n    import a\nelse:\n    import b")
    assert [node.names[0].name for node in executed(tree) if isinstance(node, ast.Import)] == ["b"]


def test_no_modules_import_each_other() -> None:
    """There is no circle in the imports of harness and conformance, however long, lazy imports included."""
    assert circles(graph()) == []


def test_the_harness_never_imports_the_conformance_suite() -> None:
    """No module of harness imports one of conformance, neither at its top nor within a function."""
    assert [
        f"{name} imports {other}"
        for name, others in graph().items()
        for other in others
        if name.split(".")[0] == "harness" and other.split(".")[0] == "conformance"
    ] == []


def test_every_module_has_a_place_in_the_order() -> None:
    """A new folder is put where it belongs, and the order names no folder that is not there."""
    assert {place(name) for name in modules()} == set(ORDER)


def test_folders_are_imported_in_one_direction() -> None:
    """No folder imports one below it in the order."""
    assert backward() == {}
