"""The text of the project is plain, modern English: docstrings, comments, messages and pages have none of the words below."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("harness", "conformance", "fixtures", "tests", "benchmarks", "docs")
FILES = sorted(
    [*ROOT.glob("*.md"), *(file for folder in FOLDERS for end in ("py", "md", "toml") for file in (ROOT / folder).rglob(f"*.{end}"))]
)
RETIRED = (
    # Home-made names of things that have a standard name.
    r"wardens?",
    r"mends?|mended",
    # Archaic or poetic turns, which a reader must translate.
    r"whosoever|whoever|wherein|whereof|thereof|lest|whence|thence|withal|hither",
    r"gone bad|of (its|their) own accord|takes? along|by no fault of|for no \w+'s sake|without a word",
    r"befell|befalls?|kindred|heeds?|heeded|sundry|naught|nought",
    r"(is|are) told of|told apart|tells? of|comes? of it|came of it|bears? (an?|the|no) (id|mark|name|pid)",
    r"stands? in the way|as (it|they) stands?|(lie|lies|lay) beside",
    r"so manieth|none other|no other than|nothing but zeros|anew|merely|spoilt|affair|of ours|all the same(?=[.:;])",
    r"(is|are|was|were|been) told|(hand|hands|handed) (over|out)|take[sn]? (it|them|what \w+) for",
)
_BAD = re.compile(rf"\b({'|'.join(RETIRED)})\b", re.IGNORECASE)


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, message and comment of a module; of a page or a known file the text outside of its code."""
    text = file.read_text(encoding="utf-8")
    if file.suffix in (".md", ".toml"):
        yield 1, re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def found(file: Path) -> list[str]:
    """The retired words of a file, each with its line."""
    bad = []
    for line, text in texts(file):
        for match in _BAD.finditer(text):
            bad.append(f"{file.relative_to(ROOT)}:{line}: {match[0]!r}")
    return bad


@pytest.mark.parametrize("folder", [*FOLDERS, "."])
def test_no_retired_word(folder: str) -> None:
    """No docstring, comment, message or page has a retired or archaic word."""
    here = [file for file in FILES if (file.parent == ROOT if folder == "." else ROOT / folder in file.parents)]
    assert [bad for file in here if file != Path(__file__) for bad in found(file)] == []
