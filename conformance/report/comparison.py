"""A comparison as text, Markdown and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from ...harness.contract.source_names import DEFAULT
from .compared import Comparison
from .digest import SIGNS
from .html import page
from .model import Report
from .places import Column
from .printable import printable
from .terminal import STYLES, WIDTH, heading, legend, to_string

_GAP = 2
DIFFERENT = "These runs had different settings, so their cells cannot be compared directly:"


def render(found: Comparison, *, width: int = WIDTH, colour: bool = False) -> str:
    """The tables side by side, in blocks that fit the width: one topology with all its loaders is never split."""
    return to_string(_text(found, max(width, 60)), colour)


def _text(found: Comparison, width: int) -> Iterator[Text]:
    short = _short_names(found.names)
    for report, name, letter in zip(found.reports, found.names, short, strict=True):
        yield Text.assemble("  ", (letter, "bold"), f" = {printable(name)}")
        for cost in costs(report):
            yield from _paragraph(printable(cost), width, "    ")
    yield from _warning(found, width)
    label = max(len(name) for name in ("sharded_stream", *found.scenarios)) + 2
    for block in _blocks(found, short, width - label - 2):
        yield Text("")
        yield from _block(found, short, block, label)
    yield Text("")
    yield from legend(SIGNS, width)
    yield from _paragraph(
        "A cell: samples that arrived of those that should, how the trial ended, its worst verdict.", width
    )
    yield from heading("Trials in which a promise was broken")
    yield from _tally_lines(found, short)


def _warning(found: Comparison, width: int) -> Iterator[Text]:
    if found.differences:
        yield Text("")
        yield Text(f"  {DIFFERENT}", "yellow")
        for difference in found.differences:
            yield from _paragraph(printable(difference), width)


def costs(report: Report) -> list[str]:
    """The cost of one bad sample with this loader, one line for each behaviour."""
    return [f"one bad sample: {fact}" for fact in report.card if fact.topic == "bad sample"]


def _paragraph(text: str, width: int, indent: str = "  ") -> Iterator[Text]:
    for line in textwrap.wrap(text, width - len(indent)):
        yield Text(f"{indent}{line}", "dim")


def _short_names(names: Sequence[str]) -> list[str]:
    return [chr(ord("A") + index) if index < 26 else f"#{index + 1}" for index in range(len(names))]


def _cell_text(found: Comparison, report: int, scenario: str, column: Column) -> str:
    cell = found.cell(report, scenario, column)
    return f"{cell.sign} {cell}" if cell.kind else ""


def _widths(found: Comparison, short: Sequence[str], column: Column) -> list[int]:
    """For each report the width of its cells under one topology."""
    return [
        max([len(name), *(len(_cell_text(found, index, scenario, column)) for scenario in found.scenarios)])
        for index, name in enumerate(short)
    ]


def _blocks(found: Comparison, short: Sequence[str], room: int) -> Iterator[list[Column]]:
    block: list[Column] = []
    used = 0
    for column in found.columns:
        needed = _span(_widths(found, short, column))
        if block and (used + needed > room or column.source != block[-1].source):
            yield block
            block, used = [], 0
        block.append(column)
        used += needed
    if block:
        yield block


def _span(widths: Sequence[int]) -> int:
    """Columns of the terminal that one topology needs, with the gap to the next."""
    return sum(widths) + _GAP * (len(widths) + 1)


def _block(found: Comparison, short: Sequence[str], columns: Sequence[Column], label: int) -> Iterator[Text]:
    first, second = (
        Text("  " + _source(found, columns[0]).ljust(label), "dim"),
        Text("  " + "scenario".ljust(label), "dim"),
    )
    spans = []
    for column in columns:
        widths = _widths(found, short, column)
        widths[-1] += max(0, len(str(column.topology)) + _GAP - _span(widths))
        spans.append(widths)
        first.append(str(column.topology).ljust(_span(widths)), "dim")
        for name, width in zip(short, widths, strict=True):
            second.append(name.ljust(width + _GAP), "bold")
        second.append(" " * _GAP)
    yield first
    yield second
    for scenario in found.scenarios:
        if not any(found.cell(index, scenario, column).kind for column in columns for index in range(len(short))):
            continue
        line = Text("  " + scenario.ljust(label))
        for column, widths in zip(columns, spans, strict=True):
            for index, width in enumerate(widths):
                style = STYLES[found.cell(index, scenario, column).kind]
                line.append(_cell_text(found, index, scenario, column).ljust(width + _GAP), style)
            line.append(" " * _GAP)
        yield line


def _source(found: Comparison, column: Column) -> str:
    return column.source if any(other.source != DEFAULT for other in found.columns) else ""


def _tally_lines(found: Comparison, short: Sequence[str]) -> Iterator[Text]:
    label = max([len("check"), *(len(name) for name in found.tallies)]) + 2
    widths = [
        max([len(name), *(len(str(tallies[index])) for tallies in found.tallies.values())]) + _GAP
        for index, name in enumerate(short)
    ]
    yield Text.assemble(
        ("  " + "check".ljust(label), "dim"),
        *((name.ljust(width), "bold") for name, width in zip(short, widths, strict=True)),
    )
    for check, tallies in found.tallies.items():
        line = Text("  " + check.ljust(label))
        for tally, width in zip(tallies, widths, strict=True):
            line.append(str(tally).ljust(width), STYLES["fail" if tally.failed else "pass" if tally.judged else "n/a"])
        yield line


def markdown(found: Comparison) -> str:
    """The comparison as a Markdown document with one table for the scenarios and one for the checks."""
    lines = ["# Comparison of data loaders", ""]
    if found.differences:
        lines += [DIFFERENT, "", *(f"- {_escaped(difference)}" for difference in found.differences), ""]
    for report, name in zip(found.reports, found.names, strict=True):
        lines += [f"- {_escaped(name)}: {_escaped(cost)}" for cost in costs(report)]
    lines += [""] * (lines[-1] != "")
    lines += ["| " + " | ".join(["scenario", *(_escaped(t) for t in _titles(found))]) + " |"]
    lines += ["| --- |" + " --- |" * len(_titles(found))]
    for scenario in found.scenarios:
        cells = [
            _escaped(_cell_text(found, index, scenario, column))
            for column in found.columns
            for index in range(len(found.names))
        ]
        lines.append("| " + " | ".join([_escaped(scenario), *cells]) + " |")
    lines += [
        "",
        "A cell: samples that arrived of those that should, how the trial ended, after the sign of its worst verdict (",
    ]
    lines[-1] += ", ".join(f"`{sign}` {words}" for sign, words in SIGNS.values()) + ")."
    lines += ["", "## Trials in which a promise was broken", ""]
    lines += ["| " + " | ".join(["check", *(_escaped(name) for name in found.names)]) + " |"]
    lines += ["| --- |" + " --- |" * len(found.names)]
    lines += [
        "| " + " | ".join([check, *(_escaped(str(tally)) for tally in row)]) + " |"
        for check, row in found.tallies.items()
    ]
    return "\n".join(lines) + "\n"


def _titles(found: Comparison) -> list[str]:
    return [f"{name} {column}" for column in found.columns for name in found.names]


def _escaped(text: str) -> str:
    clean = printable(text)
    for character in "\\`*_[]<>|~#":
        clean = clean.replace(character, f"\\{character}")
    return clean


def html(found: Comparison) -> str:
    """The comparison as one self-contained HTML file."""
    sources = []
    for source in dict.fromkeys(column.source for column in found.columns):
        columns = [column for column in found.columns if column.source == source]
        scenarios = [name for name in found.scenarios if any((i, name, c) in found.cells for i in range(len(found.names)) for c in columns)]
        sources.append((source, columns, scenarios))
    return page("compare.html.j2", found=found, sources=sources, letters=_short_names(found.names), DIFFERENT=DIFFERENT, costs=costs)
