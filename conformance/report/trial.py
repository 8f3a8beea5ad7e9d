"""One trial, or the trials of a relation, as text: how each ended, the verdict of every check, and the evidence if it was cut short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from ...harness.sources.base import truth
from ...harness.trial.history import History
from ..checks.base import count, spans
from .digest import SIGNS, digest, kind_of
from .model import Report
from .printable import printable
from .result import TrialResult
from .terminal import STYLES, WIDTH, about, field, findings, heading, to_string

_LINES_PRINTED = 8


def render(report: Report, histories: Sequence[History], *, width: int = WIDTH, colour: bool = False) -> str:
    """The report over one trial or a few, with their histories beside it.

    Args:
        histories: one for each trial of the report, in the same order.
    """
    return to_string(_text(report, histories, max(width, 60)), colour)


def _text(report: Report, histories: Sequence[History], width: int) -> Iterator[Text]:
    found = digest(report)
    yield from about(found, width)
    for number, (trial, history) in enumerate(zip(report.trials, histories, strict=True)):
        if number:
            yield Text("")
        yield from _one(trial, history, width)
    yield from findings(found, width)


def _one(trial: TrialResult, history: History, width: int) -> Iterator[Text]:
    yield from field("trial", trial.spec.id, width)
    yield from field("faults", _faults(history), width)
    yield from field("ended", _ended(trial), width)
    for process in history.ended.evidence:
        yield from field("process", _process(process), width)
    if trial.folder is not None:
        yield from field("record", str(trial.folder), width)
    yield Text("")
    for verdict in trial.verdicts:
        kind = kind_of(verdict)
        where = f" in {verdict.cause_in}" if verdict.cause_in else ""
        cause = f"follows from {verdict.cause}{where}" if verdict.cause else verdict.reason
        line = Text.assemble("  ", (SIGNS[kind][0], STYLES[kind]), f" {verdict.check}")
        if cause:
            line.append(f"   {printable(cause)}", "dim")
        yield line
    if not history.complete and history.output:
        yield from heading("The last printed lines")
        for text in history.output.splitlines()[-_LINES_PRINTED:]:
            indent = len(text) - len(text.lstrip(" "))
            yield Text(f"  {' ' * indent}{printable(text)}")


def _faults(history: History) -> str:
    plan = history.spec.plan
    if not plan:
        return "none"
    kinds: dict[str, list[int]] = {}
    for sample, fault in plan.items():
        kinds.setdefault(repr(fault), []).append(sample)
    struck = set(history.struck.tolist())
    planned = "; ".join(f"{spans(samples)}: {fault}" for fault, samples in kinds.items())
    if struck == set(plan):
        return f"{planned} — took hold"
    if not truth(history.spec).reads_recorded:
        return f"{planned} — " + (f"seen to take hold on {spans(struck)}" if struck else "stored")
    return f"{planned} — " + (f"took hold on {spans(struck)} only" if struck else "never took hold")


def _ended(trial: TrialResult) -> str:
    return (
        f"{trial.ended} after {trial.seconds:.1f} s: {trial.delivered} samples arrived of {trial.arrivals_expected} that should, "
        f"{count(trial.raised, 'error')} raised, {count(trial.skipped, 'skip')} reported"
    )


def _process(process: object) -> str:
    data = dict(process) if isinstance(process, dict) else {}
    waits = f" in {data['waits_in']}" if data.get("waits_in") not in (None, "", "0") else ""
    return f"{data.get('pid')} ({data.get('name')}), child of {data.get('ppid')}: {data.get('state')}{waits}"
