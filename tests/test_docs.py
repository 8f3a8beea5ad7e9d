"""The pages say what the code says: what is generated is compared with it, what is linked is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from badbatch.conformance.commands import pages
from badbatch.harness.errors import UserError

ROOT = Path(__file__).parents[1]
MODULES_OF_THE_MAP = sorted(
    path.parent.relative_to(ROOT).as_posix() for package in ("harness", "conformance") for path in (ROOT / package).glob("*/__init__.py")
)
WRITTEN = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("name", sorted(pages.pages()))
def test_pages_are_as_the_registries_have_them(name: str) -> None:
    """Each generated page is what ``python -m badbatch.conformance.commands.pages`` would write now."""
    assert (ROOT / name).read_text(encoding="utf-8") == pages.pages()[name]


@pytest.mark.parametrize("name", pages.BY_HAND)
def test_tables_are_as_the_registries_have_them(name: str) -> None:
    """Each generated table inside a page that is written by hand is what would be written now."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.count("<!-- begin generated: ") == len(pages.tables())
    assert text == pages.filled(text, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- begin generated: chekcs -->\n<!-- end generated: chekcs -->\n", "asks for the table 'chekcs'"),
        ("<!-- begin generated: checks -->\n", "is not closed"),
    ],
)
def test_wrong_marks_are_refused(text: str, message: str) -> None:
    """A mark that names no table, or is not closed, is reported with its page."""
    with pytest.raises(UserError, match=rf"^page\.md.*{message}"):
        pages.filled(text, "page.md")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_paths_that_pages_name_are_there(page: Path) -> None:
    """A path of the repository that a page names exists; ``<name>`` in it matches any name."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = re.findall(r"`((?:harness|conformance|fixtures|tests|docs|benchmarks|\.ci)/[\w./<>*-]*)`", text)
    assert [path for path in named if not list(ROOT.glob(re.sub(r"<\w+>", "*", path)))] == []


@pytest.mark.parametrize("name", MODULES_OF_THE_MAP)
def test_the_map_names_every_folder(name: str) -> None:
    """Each folder of the two packages has its row in the map of ARCHITECTURE.md, and what a row names beside it is in it."""
    rows = [row for row in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines() if row.startswith(f"| `{name}/` |")]
    assert len(rows) == 1
    for file in re.findall(r"`(\w+\.py)`", rows[0]):
        assert (ROOT / name / file).is_file(), file


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link leads to a file of the repository, and its anchor to a heading there."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [_anchor(heading) for heading in headings], f"{page.name} links to {target}#{anchor}"


def _anchor(heading: str) -> str:
    """What the common renderers make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("file", sorted((ROOT / "tests").glob("test_*.py")), ids=lambda file: file.stem)
def test_every_test_says_what_is_true(file: Path) -> None:
    """Each test has a docstring that is a sentence."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            said = ast.get_docstring(node)
            assert said is not None, f"{node.name} says nothing"
            assert said.strip().endswith("."), f"{node.name}: {said!r} is no sentence"
