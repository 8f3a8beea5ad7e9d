"""The pages that are made from the registries: ``python -m badbatch.conformance.commands.pages`` writes them again.

Whole pages are in ``docs/``; tables inside pages that are written by hand are between two marks,
``<!-- begin generated: NAME -->`` and ``<!-- end generated: NAME -->``. A test compares all of them with the code.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...harness.corpus.base import DiskFault
from ...harness.corpus.damage import disk_faults
from ...harness.corpus.kinds import KINDS as CORPUS_KINDS
from ...harness.errors import UserError
from ...harness.exit_codes import ExitCode
from ...harness.faults import Fault, registry
from .. import checks
from ..options import Options
from . import explain, glossary, options_page

BY_HAND = ("README.md",)
"""Pages that contain generated tables, relative to the repository's root."""
_CODE = re.compile(r"``([^`]+)``")  # as docstrings write it
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


def pages() -> dict[str, str]:
    """From a path relative to the repository's root to the text that belongs there, for whole pages."""
    return {
        "docs/checks.md": _page("checks", "Checks", _CHECKS),
        "docs/scenarios.md": _page("scenarios", "Scenarios", _SCENARIOS),
        "docs/diagnoses.md": _page("diagnoses", "Diagnoses", _DIAGNOSES),
        "docs/faults.md": _faults(),
        "docs/glossary.md": _glossary(),
        "docs/options.md": options_page.documentation(),
    }


def tables() -> dict[str, str]:
    """From the name of a generated table to its Markdown."""
    return {
        "checks": table(
            ("check", "what it checks"),
            ((f"[`{check.id}`](docs/checks.md#{check.id})", check.title) for check in checks.registry().values()),
        ),
        "exit-codes": table(("code", "meaning"), ((f"{code.value}", code.meaning) for code in ExitCode)),
    }


def filled(text: str, where: str) -> str:
    """A page written by hand, with the text between its marks made again.

    Raises:
        UserError: a mark names no table, or is not closed.
    """
    known = tables()
    for name in re.findall(r"<!-- begin generated: (\S+) -->", text):
        if name not in known:
            raise UserError(f"{where} asks for the table {name!r}; there are {', '.join(known)}")
        begin, end = f"<!-- begin generated: {name} -->", f"<!-- end generated: {name} -->"
        head, _, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not closed:
            raise UserError(f"{where}: the mark of the table {name!r} is not closed by {end}")
        text = f"{head}{begin}\n\n{known[name]}\n{end}{tail}"
    return text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


_CHECKS = """\
Each check is one promise, judged on the record of a trial. Its id is stable: use it with `--loader-check`, in known files
and in scripts. `badbatch explain ID` prints the same.

A relation compares several trials of the same loader. It is asked of one of them, and its verdict is part of that one's. badbatch takes
the other trials from those that it runs anyway, and adds those that it does not run. `--loader-not-check ID` leaves a relation out, with
the trials that only it needs."""
_SCENARIOS = f"""\
Each scenario is a fault, where it strikes, and the settings of the job. It is run in every topology: workers × ranks × start
method. The numbers of samples are those of the default of {Options().samples} samples in batches of {Options().batch_size}."""
_DIAGNOSES = """\
If the pattern of a failing history has a likely cause, the report names it after *likely*. If none fits, it says
nothing."""

_GLOSSARY = """\
The words of the reports, and the sources. `badbatch explain WORD` prints the same."""


def _page(kind: str, title: str, lead: str) -> str:
    names = explain.names_of(kind)
    return f"# {title}\n\n{lead}\n\n" + "\n".join(_article(article) for article in _articles(kind, names))


def _glossary() -> str:
    """Two tables: words with all their forms, and sources."""
    words = [(", ".join((f"**{term.name}**", *term.also)), _markdown(term.meaning)) for term in glossary.WORDS]
    sources = [(f"`{term.name}`", _markdown(term.meaning)) for term in glossary.SOURCES]
    parts = ["# Glossary", "", _GLOSSARY, "", "## Words", "", table(("word", "meaning"), words)]
    return "\n".join([*parts, "## Sources", "", table(("source", "what it is"), sources)])


def _articles(kind: str, names: Iterable[str]) -> Iterator[explain.Article]:
    """One article for each name: if several have the same name, the one of this kind."""
    for name in names:
        yield next(article for article in explain.find(name) if _plural(article.kind) == kind)


def _plural(kind: str) -> str:
    return {"diagnosis": "diagnoses", "relation": "checks"}.get(kind, f"{kind}s")  # relations are on the page of the checks


def _article(article: explain.Article, level: int = 2) -> str:
    lines = [f"{'#' * level} {article.name}", "", _markdown(article.title), ""]
    for label, text in article.parts:
        lines.append(f"- **{label}:** {f'`{text}`' if label in _IS_CODE else _markdown(text)}")
    return "\n".join(lines) + "\n"


_IS_CODE = ("import", "parameters", "settings")


def _markdown(text: str) -> str:
    """A docstring's text on one line, as Markdown."""
    text = " ".join(text.split())
    return _CODE.sub(r"`\1`", _ROLE.sub(lambda found: f"`{found.group(1).rpartition('.')[2]}`", text)).replace("<", "&lt;")


def _faults() -> str:
    in_memory = sorted(kind for kind, cls in registry().items() if not issubclass(cls, DiskFault))
    parts = [
        "# Faults",
        "",
        "A fault is a small frozen value. Those in memory act on one read of one sample of the sources `map`, `stream` and",
        "`sharded_stream`; those on disk damage stored samples, when a corpus is made. Each can be written as JSON and read back.",
        "",
        "## In memory",
        "",
        *(_article(article, level=3) for article in _articles("faults", in_memory)),
        "## On disk",
        "",
    ]
    for kind in CORPUS_KINDS:
        for odd, heading in ((False, "damage"), (True, "legal oddities")):
            chosen = {name: cls for name, cls in disk_faults(kind).items() if cls.odd is odd}
            if chosen:
                rows = [_row(name, cls) for name, cls in sorted(chosen.items())]
                parts += [f"### {kind}: {heading}", "", table(("fault", "acts on", "family", "parameters", "what it is"), rows)]
    return "\n".join(parts)


def _row(name: str, cls: type[DiskFault]) -> tuple[str, ...]:
    parameters = ", ".join(f"`{field.name}`" for field in dataclasses.fields(cls))  # type: ignore[arg-type]
    return f"`{name}`", cls.level, cls.family, parameters, _markdown(_title(cls))


def _title(cls: type[Fault]) -> str:
    return (cls.__doc__ or "").strip().partition("\n\n")[0]


def main(root: Path) -> None:
    """Write every generated page and table below the repository's root."""
    for name, text in pages().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in BY_HAND:
        path = root / name
        path.write_text(filled(path.read_text(encoding="utf-8"), name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
