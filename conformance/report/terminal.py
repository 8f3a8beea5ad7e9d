"""A report as text, for terminals, pipes and logs. Without colour it is the same on every machine."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ..checks.base import count, spans
from ..judging.verdict import Mark, Verdict
from .broken import MOST_FIRST, Broken
from .digest import SIGNS, Digest, Reason, digest, kind_of, worst
from .model import Report
from .places import Column, heads
from .printable import printable

WIDTH = 100
"""Columns of a report that does not go to a terminal."""

LOOK_AT_FILES = "add --keep-corpus DIR to keep the files of this trial in DIR"
_LABEL = 11
STYLES = {
    "fail": "bold red",
    "flaky": "bold magenta",
    "inconclusive": "yellow",
    "known": "cyan",
    "pass": "green",
    "n/a": "dim",
    "": "",
}
_NARROWEST = 60
_MOST_FILES = 4


def render(report: Report, *, width: int = WIDTH, colour: bool = False) -> str:
    """The summary of a run: contract, matrix, broken promises, known failures, inconclusive verdicts, totals.

    Args:
        width: in columns.
        colour: with the terminal's escape sequences.
    """
    return to_string(_summary(digest(report), max(width, _NARROWEST)), colour)


def render_last_line(report: Report, *, colour: bool = False) -> str:
    """Only the last line of the summary."""
    return to_string([_last_line(digest(report))], colour)


def render_failure(verdict: Verdict, *, follows: Sequence[str] = (), width: int = WIDTH, colour: bool = False) -> str:
    """One verdict in the five-part form: promised, happened, lost, likely, again.

    Args:
        follows: checks whose failures in the same trial are consequences of this one.
    """
    return to_string(_failure(Broken(verdict, tuple(follows), (verdict.trial,), 0, (), ()), max(width, _NARROWEST)), colour)


def to_string(lines: Sequence[Text] | Iterator[Text], colour: bool) -> str:
    """Lines as one string without a newline at its end."""
    if not colour:
        return "\n".join(line.plain.rstrip() for line in lines)
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False, highlight=False
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.rstrip("\n")


def _failure(group: Broken, width: int) -> Iterator[Text]:
    verdict = group.verdict
    inside = verdict.trial.removeprefix(verdict.scenario)[1:-1]
    attribute = verdict.loader.partition(":")[2] or verdict.loader
    head = printable(" · ".join((attribute, verdict.scenario, inside, verdict.check)))
    kind = kind_of(verdict)
    sign = "FLAKY" if kind == "flaky" else SIGNS[kind][1].upper()
    style = STYLES[kind]
    yield Text.assemble((head, "bold"), " " * max(2, width - len(head) - len(sign)), (sign, style))
    yield from field("promised", verdict.promised, width)
    yield from field("happened", verdict.happened, width)
    if verdict.error:
        yield from field("raised", verdict.error, width)
    if verdict.trials:
        yield from field("compared", verdict.compared, width)
    yield from _samples(verdict, width)
    if verdict.reason:
        yield from field("because", verdict.reason, width)
    if verdict.flaky is not None:
        times, runs = verdict.flaky
        yield from field("flaky", f"in {times} of {count(runs, 'run')}", width)
    if verdict.diagnosis is not None:
        yield from field("likely", f"{verdict.diagnosis.text} [{verdict.diagnosis.id}]", width)
    if group.follows:
        yield from field("follows", ", ".join(group.follows), width)
    if group.also:
        yield from field("all in", "; ".join(group.also), width)
    if group.sometimes:
        yield from field("sometimes", "; ".join(group.sometimes), width)
    if verdict.replay:
        yield from field("again", verdict.replay, len(verdict.replay) + width)  # users copy the command: it stays one line
        if verdict.files:
            yield from field("", LOOK_AT_FILES, width)


def _samples(verdict: Verdict, width: int) -> Iterator[Text]:
    """Which samples, and whose share they were: at most five spans of each kind, then a count."""
    for label, samples in (("lost", verdict.lost), ("doubled", verdict.duplicated), ("samples", verdict.witnesses)):
        if samples:
            whose = f", {verdict.share}" if verdict.share and label == "lost" else ""
            yield from field(
                label, f"{spans(samples)}   ({count(len(set(samples)), 'sample')}{printable(whose)})", width, False
            )
    if verdict.files:
        shown = ", ".join(f"{sample} {path}" for sample, path in verdict.files[:_MOST_FILES])
        yield from field("files", shown + (", …" if len(verdict.files) > _MOST_FILES else ""), width)


def field(label: str, text: str, width: int, clean: bool = True) -> Iterator[Text]:
    """A labelled text, wrapped beside its label."""
    indent = " " * (_LABEL + 2)
    text = printable(text) if clean else text
    lines = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    yield Text.assemble("  ", (label.ljust(_LABEL), "dim"), lines[0])
    for line in lines[1:]:
        yield Text(indent + line)


def heading(text: str) -> Iterator[Text]:
    """A blank line and a title."""
    yield Text("")
    yield Text(text, "bold")


def _summary(found: Digest, width: int) -> Iterator[Text]:
    yield from about(found, width)
    yield from _matrix(found, width)
    yield from findings(found, width)


def findings(found: Digest, width: int) -> Iterator[Text]:
    """Broken promises, known failures, inconclusive verdicts, what is not applicable, and the last line."""
    for group in found.broken:
        yield Text("")
        yield from _failure(group, width)
    if found.flaky:
        yield from heading("Flaky: not the same in each run")
        for reason in found.flaky:
            yield from _one_reason("flaky", f"{reason.check}: ", reason, width)
    if found.known:
        yield from heading("Known failures")
        for reason in found.known:
            yield from _one_reason("known", f"{reason.check}: ", reason, width)
    if found.report.stale_known:
        yield from heading("Known files that no longer fit")
        for entry in found.report.stale_known:
            yield from _listed("fail", entry, width)
    if found.inconclusive:
        yield from heading("Inconclusive")
        for reason in found.inconclusive:
            yield from _one_reason("inconclusive", f"{count(reason.verdicts, 'verdict')}: ", reason, width)
    if found.not_applicable:
        yield from heading("Not applicable")
        for reason in found.not_applicable:
            yield from _one_reason("n/a", "", reason, width)
    yield from _fix_first(found, width)
    yield Text("")
    yield _last_line(found)


def _fix_first(found: Digest, width: int) -> Iterator[Text]:
    """The distinct promises broken, at most ten; if there is only one, the failure above is enough."""
    if len(found.first) < 2:
        return
    yield from heading("Fix these first")
    for number, first in enumerate(found.first[:MOST_FIRST], 1):
        verdict = first.worst.verdict
        yield Text.assemble(f"  {number:2}  ", (verdict.check, "bold"), f"   {first.extent}")
        tail = f" [{verdict.diagnosis.id}]" if verdict.diagnosis else ""
        cause = textwrap.shorten(printable(first.cause), 2 * (width - 10) - len(tail), placeholder=" …")  # it is shown in full above
        for line in textwrap.wrap(cause + tail, width - 6, break_long_words=False, break_on_hyphens=False):
            yield Text(f"      {line}")
        if verdict.replay:
            yield Text(f"      {verdict.replay}", "dim")  # users copy the command: it stays one line
    if len(found.first) > MOST_FIRST:
        yield Text(f"      and {count(len(found.first) - MOST_FIRST, 'more promise')} broken, shown above")


def about(found: Digest, width: int) -> Iterator[Text]:
    """What was run, and the contract: declared and inferred parts separated."""
    report = found.report
    yield Text(printable(report.loader), "bold")
    run, seed = report.run, f"seed {report.seed}"
    if run.badbatch:
        yield from field("run", ", ".join(part for part in (run.date, f"badbatch {run.badbatch}", run.size, seed) if part), width)
    else:
        yield from field("run", seed, width)
    yield from field("versions", ", ".join(f"{name} {version}" for name, version in report.versions.items()), width)
    for promises in found.promises:
        for label, words in (("declared", promises.declared), ("inferred", promises.inferred)):
            if not words:
                continue
            where = f"{', '.join(promises.sources)}: " if len(report.contracts) > 1 else ""
            yield from field(label, where + " ".join(words), width)
        if not promises.declared and not promises.inferred:
            yield from field("contract", f"nothing declared, nothing inferred   ({', '.join(promises.sources)})", width)
    for note in report.notes:
        yield from field("note", note, width)
    if report.card:
        yield from heading("Observed")
        for fact in report.card:
            yield from field(fact.topic, str(fact), width)


def _matrix(found: Digest, width: int) -> Iterator[Text]:
    """Scenarios × topologies, in as many blocks as needed to fit the width."""
    if not found.rows:
        return
    label = max(len(name) for name, _ in found.rows) + 4
    cell = max([2, *(len(word) for column in found.columns for word in column.heads)]) + 2
    for chosen in _blocks(found.columns, width - label, cell):
        columns = [found.columns[index] for index in chosen]
        yield Text("")
        yield from _head(columns, label, cell, {column.source for column in found.columns} != {"map"})
        for name, kinds in found.rows:
            if any(kinds[index] for index in chosen):
                cells = [(SIGNS[kinds[i]][0] if kinds[i] else "", STYLES[kinds[i]]) for i in chosen]
                yield _row(name, cells, columns, label, cell)
    used = [kind for kind in SIGNS if any(kind in kinds for _, kinds in found.rows)]
    yield Text("")
    yield from legend(used, width)


_GAP = 3  # between sources


def legend(kinds: Iterable[str], width: int) -> Iterator[Text]:
    """What the signs mean."""
    line = Text(" ")
    for kind in kinds:
        sign, words = SIGNS[kind]
        if len(line) + len(words) + 4 > width:
            yield line
            line = Text(" ")
        line.append(" ").append(sign, STYLES[kind]).append(f" {words}  ")
    yield line


def _blocks(columns: Sequence[Column], room: int, cell: int) -> Iterator[list[int]]:
    """Indices of columns that fit side by side; a source begins a new block if it does not fit as a whole."""
    block: list[int] = []

    def used(more: Sequence[int]) -> int:
        chosen = [columns[index] for index in [*block, *more]]
        return cell * len(chosen) + sum(_gaps(chosen, cell))

    for source in dict.fromkeys(column.source for column in columns):
        mine = [index for index, column in enumerate(columns) if column.source == source]
        if block and used(mine) > room:
            yield block
            block = []
        for index in mine:
            if block and used([index]) > room:
                yield block
                block = []
            block.append(index)
    if block:
        yield block


def _gaps(columns: Sequence[Column], cell: int) -> list[int]:
    """Blanks before each column: none within a source; before another source, at least as many as the first one's name needs."""
    gaps = []
    for before, column in zip([None, *columns], columns, strict=False):
        if before is None or before.source == column.source:
            gaps.append(0)
        else:
            width = cell * sum(other.source == before.source for other in columns)
            gaps.append(_GAP + max(0, cell - 1 + len(before.source) - width))
    return gaps


def _head(columns: Sequence[Column], label: int, cell: int, with_source: bool) -> Iterator[Text]:
    """The headings of the columns, one line for the source and one for each other heading."""
    if with_source:
        yield Text(_source_line(columns, label, cell), "dim")
    for name, words in heads(columns):
        yield _row(name, [(word, "dim") for word in words], columns, label, cell, "dim")


def _source_line(columns: Sequence[Column], label: int, cell: int) -> str:
    line, at, last = "  source".ljust(label), label, ""
    for gap, column in zip(_gaps(columns, cell), columns, strict=True):
        at += gap
        if column.source != last:
            line = line.ljust(at + cell - 1) + column.source  # begins over the last letter of its first cell
            last = column.source
        at += cell
    return line


def _row(
    name: str, cells: Sequence[tuple[str, str]], columns: Sequence[Column], label: int, cell: int, style: str = ""
) -> Text:
    line = Text.assemble((f"  {name}".ljust(label), style))
    for gap, (text, cell_style) in zip(_gaps(columns, cell), cells, strict=True):
        line.append(" " * gap + text.rjust(cell), cell_style)
    return line


def _one_reason(kind: str, lead: str, reason: Reason, width: int) -> Iterator[Text]:
    places = f" — {'; '.join(reason.places)}" if reason.places else ""
    if not places and kind == "inconclusive":
        places = " — in trials that a failure shown above has cut short"
    yield from _listed(kind, f"{lead}{reason.text}{places}", width)


def _listed(kind: str, text: str, width: int) -> Iterator[Text]:
    lines = textwrap.wrap(printable(text), width - 4, break_long_words=False, break_on_hyphens=False) or [""]
    yield Text.assemble("  ", (SIGNS[kind][0], STYLES[kind]), f" {lines[0]}")
    for line in lines[1:]:
        yield Text(f"    {line}")


def _last_line(found: Digest) -> Text:
    kinds = {verdict.mark.value for verdict in found.report.verdicts} - {Mark.NA.value, Mark.KNOWN.value}
    style = "fail" if found.report.stale_known else worst(kinds)
    return Text.assemble((f"{found.conclusion}: ", STYLES[style]), found.totals)
