"""What every report shows, in the order in which it shows it: the same for live and for stored runs."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...harness.contract.job import Contract
from ...harness.trial.spec import Topology
from ..judging.verdict import Mark, Verdict
from .model import Report

SIGNS: Mapping[str, tuple[str, str]] = {
    # The worst first: a trial's cell is the first of these that occurs in it. A known failure goes before a pass, so that
    # a cell without a blemish means a trial without one.
    "fail": ("F", "fail"),
    "unsteady": ("~", "unsteady"),
    "inconclusive": ("?", "inconclusive"),
    "known": ("k", "known failure"),
    "pass": (".", "pass"),
    "n/a": ("-", "not applicable"),
}
"""From the kind of a cell to its sign and its meaning."""

_MOST_PLACES = 6


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the matrix."""

    source: str
    topology: Topology

    def __str__(self) -> str:
        return str(self.topology) if self.source == "map" else f"{self.topology},source={self.source}"


@dataclasses.dataclass(frozen=True)
class Promises:
    """The contract for some sources, declared and inferred parts told apart."""

    sources: tuple[str, ...]
    declared: tuple[str, ...]
    inferred: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Broken:
    """One broken promise, told once for all the trials that broke it in the same way."""

    verdict: Verdict
    """The first of them, in the simplest topology; a steady one where there is one."""
    follows: tuple[str, ...]
    """Checks whose failures in these trials are consequences of this one."""
    trials: int
    also: tuple[str, ...]
    """Where it failed every time, as ``first-bad, last-bad (everywhere)``; empty where that is the one trial told."""
    sometimes: tuple[str, ...]
    """Where it failed in some of the runs, with the rate; empty where that is the one trial told."""


@dataclasses.dataclass(frozen=True)
class Reason:
    """Verdicts that share one reason."""

    check: str
    """Empty where they are of several checks."""
    text: str
    verdicts: int
    places: tuple[str, ...]
    """Empty where they are in trials that a failure told above has cut short."""


@dataclasses.dataclass(frozen=True)
class Digest:
    """A report, ready to be set in type."""

    report: Report
    promises: tuple[Promises, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """For each scenario the kind of each cell: a key of :data:`SIGNS`; empty where nothing was run."""
    broken: tuple[Broken, ...]
    known: tuple[Reason, ...]
    inconclusive: tuple[Reason, ...]
    not_applicable: tuple[Reason, ...]
    """Of whole trials only: why their cells have the sign for it."""
    conclusion: str
    totals: str


def digest(report: Report) -> Digest:
    """Put a report in order."""
    verdicts = list(report.verdicts)
    cells = _cells(verdicts)
    columns = tuple(dict.fromkeys(column for _, column in cells))
    scenarios = tuple(dict.fromkeys(scenario for scenario, _ in cells))
    ran: dict[str, set[Column]] = collections.defaultdict(set)
    for (scenario, column), kind in cells.items():
        if kind != "n/a":
            ran[scenario].add(column)
    broken = _broken(verdicts, ran)
    return Digest(
        report=report,
        promises=_promises(report.contracts),
        columns=columns,
        rows=tuple((name, tuple(cells.get((name, column), "") for column in columns)) for name in scenarios),
        broken=broken,
        known=_known(verdicts, ran),
        inconclusive=_inconclusive(verdicts, ran),
        not_applicable=_not_applicable(verdicts, cells),
        conclusion=_conclusion(report, broken),
        totals=_totals(report),
    )


def column_of(verdict: Verdict) -> Column:
    """The column in which a verdict counts."""
    return Column(verdict.source, verdict.topology)


def kind_of(verdict: Verdict) -> str:
    """The key of :data:`SIGNS` for one verdict."""
    if verdict.mark is Mark.FAIL and verdict.steady is not None:
        return "unsteady"
    return verdict.mark.value


def worst(kinds: Collection[str]) -> str:
    """The worst of some kinds; empty where there is none."""
    return next((kind for kind in SIGNS if kind in kinds), "")


def _cells(verdicts: Iterable[Verdict]) -> dict[tuple[str, Column], str]:
    kinds: dict[tuple[str, Column], set[str]] = collections.defaultdict(set)
    for verdict in verdicts:
        kinds[verdict.scenario, column_of(verdict)].add(kind_of(verdict))
    return {cell: worst(found) for cell, found in kinds.items()}


_UNSAID = {"timeout": True, "uneven_ranks": False}  # what nearly every loader promises needs no words


def _promises(contracts: Mapping[str, Contract]) -> tuple[Promises, ...]:
    by_words: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = collections.defaultdict(list)
    for source, contract in contracts.items():
        declared: list[str] = []
        inferred: list[str] = []
        for field in dataclasses.fields(contract):
            value = getattr(contract, field.name)
            if field.name == "inferred" or value is None or _UNSAID.get(field.name) == value:
                continue
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            (inferred if field.name in contract.inferred else declared).append(f"{field.name}={text}")
        by_words[tuple(declared), tuple(inferred)].append(source)
    return tuple(Promises(tuple(sources), *words) for words, sources in by_words.items())


def _broken(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Broken, ...]:
    by_trial: dict[str, dict[str, Verdict]] = collections.defaultdict(dict)
    for verdict in verdicts:
        if verdict.mark is Mark.FAIL:
            by_trial[verdict.trial][verdict.check] = verdict
    groups: dict[tuple[str, str], list[Verdict]] = collections.defaultdict(list)
    follows: dict[tuple[str, str], dict[str, None]] = collections.defaultdict(dict)
    for failed in by_trial.values():
        for verdict in failed.values():
            root = _root(verdict, failed)
            if root is verdict:
                groups[_defect(verdict)].append(verdict)
            else:
                follows[_defect(root)][verdict.check] = None
    found = [_told_once(members, tuple(sorted(follows[defect])), ran) for defect, members in groups.items()]
    # The most widespread first, and the unsteady ones last; what is equal stays in the order of the run.
    return tuple(sorted(found, key=lambda group: (group.verdict.steady is not None, -group.trials)))


def _told_once(members: Sequence[Verdict], follows: tuple[str, ...], ran: Mapping[str, set[Column]]) -> Broken:
    steady = [verdict for verdict in members if verdict.steady is None]
    unsteady = [verdict for verdict in members if verdict.steady is not None]
    first = (steady or unsteady)[0]
    also = _places([(v.scenario, column_of(v)) for v in steady], ran) if len(steady) > 1 else ()
    sometimes: tuple[str, ...] = ()
    if unsteady and len(members) > 1:
        times = sum(v.steady[0] for v in unsteady if v.steady)
        runs = sum(v.steady[1] for v in unsteady if v.steady)
        sometimes = (*_places([(v.scenario, column_of(v)) for v in unsteady], ran), f"in {times} of {runs} runs")
    return Broken(first, follows, len(members), also, sometimes)


def _root(verdict: Verdict, failed: Mapping[str, Verdict]) -> Verdict:
    """The failure that explains this one; itself where the cause did not fail, is known, or is explained by it in turn."""
    root, seen = verdict, {verdict.check}
    while root.cause in failed:
        root = failed[root.cause]
        if root.check in seen:
            return verdict
        seen.add(root.check)
    return root


def _defect(verdict: Verdict) -> tuple[str, str]:
    """What two failures share that are the same defect: the check, and the diagnosis or, without one, what happened.

    Numbers, and which worker or rank it was, differ from scenario to scenario and play no part.
    """
    if verdict.diagnosis is not None:
        return verdict.check, verdict.diagnosis.id
    text = f"{verdict.promised}: {verdict.happened}".partition(" (and ")[0]
    text = re.sub(r"\d+(\.\d+)?((, |-)\d+)*", "#", text)
    text = re.sub(r"(, rank #| of rank #)", "", text)
    text = re.sub(r"worker #|the reading process", "it", text)
    return verdict.check, re.sub(r"# (\w+?)(es|s)?\b", r"# \1", text)


def _known(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Reason, ...]:
    reasons: dict[str, set[str]] = collections.defaultdict(set)
    for verdict in verdicts:
        if verdict.mark is Mark.KNOWN:
            reasons[verdict.trial].add(verdict.reason)
    grouped: dict[tuple[str, str], list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        follows = any(verdict.reason.endswith(f": {reason}") for reason in reasons[verdict.trial])
        if verdict.mark is Mark.KNOWN and not follows:  # what follows from a known failure is told with it
            grouped[verdict.check, verdict.reason].append(verdict)
    return tuple(_reason(members, ran, check=check) for (check, _), members in grouped.items())


def _inconclusive(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Reason, ...]:
    """Those that stand for themselves first; then those that a failure has cut short, which are many and tell little."""
    failing = {verdict.trial for verdict in verdicts if verdict.mark is Mark.FAIL}
    grouped: dict[tuple[bool, str], list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.mark is Mark.INCONCLUSIVE:
            grouped[bool(verdict.cause) and verdict.trial in failing, verdict.reason].append(verdict)
    return tuple(
        _reason(members, ran, told=beside)
        for (beside, _), members in sorted(grouped.items(), key=lambda item: item[0][0])
    )


def _not_applicable(verdicts: Iterable[Verdict], cells: Mapping[tuple[str, Column], str]) -> tuple[Reason, ...]:
    grouped: dict[str, list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.mark is Mark.NA and cells[verdict.scenario, column_of(verdict)] == "n/a":
            grouped[verdict.reason].append(verdict)
    return tuple(_reason(members, {}) for members in grouped.values())


def _reason(
    members: Sequence[Verdict], ran: Mapping[str, set[Column]], *, check: str = "", told: bool = False
) -> Reason:
    places = () if told else _places([(verdict.scenario, column_of(verdict)) for verdict in members], ran)
    return Reason(check, members[0].reason, len(members), places)


def _places(cells: Iterable[tuple[str, Column]], ran: Mapping[str, set[Column]]) -> tuple[str, ...]:
    """Cells as ``first-bad, last-bad (wherever there are workers)``: scenarios that share their columns stand together."""
    by_scenario: dict[str, dict[Column, None]] = collections.defaultdict(dict)
    for scenario, column in cells:
        by_scenario[scenario][column] = None
    by_where: dict[str, list[str]] = collections.defaultdict(list)
    for scenario, found in by_scenario.items():
        by_where[_where(list(found), ran.get(scenario, set()))].append(scenario)
    texts = [f"{', '.join(names)} ({where})" if where else ", ".join(names) for where, names in by_where.items()]
    if len(texts) > _MOST_PLACES:
        rest = sum(len(names) for names in list(by_where.values())[_MOST_PLACES:])
        texts = [*texts[:_MOST_PLACES], f"and {rest} more scenarios" if rest > 1 else "and 1 more scenario"]
    return tuple(texts)


def _where(found: Sequence[Column], ran: Collection[Column]) -> str:
    """In which of the columns that were run: in words where words fit exactly."""
    if not ran:
        return ""
    sources = {column.source for column in ran}
    shapes = {column.topology for column in found}
    if len(sources) > 1 and set(found) != {column for column in ran if column.topology in shapes}:
        parts = []
        for source in dict.fromkeys(column.source for column in found):
            words = _in_words(
                {c.topology for c in found if c.source == source}, {c.topology for c in ran if c.source == source}
            )
            parts.append(f"{source}: {words or 'everywhere'}")
        return "; ".join(parts)
    return _in_words(shapes, {column.topology for column in ran}) or "everywhere"


_GROUPS: Mapping[str, Callable[[Topology], bool]] = {
    "wherever there are workers": lambda topology: topology.workers > 0,
    "wherever there are several ranks": lambda topology: topology.ranks > 1,
    "wherever there are workers and several ranks": lambda topology: topology.workers > 0 and topology.ranks > 1,
    "without workers": lambda topology: topology.workers == 0,
}


def _in_words(shapes: Collection[Topology], ran: Collection[Topology]) -> str:
    """Empty: in all of them."""
    if set(shapes) == set(ran) and len(ran) > 1:
        return ""
    for words, belongs in _GROUPS.items():
        if len(shapes) > 1 and set(shapes) == {topology for topology in ran if belongs(topology)}:
            return words
    return "; ".join(str(t) for t in sorted(shapes, key=lambda t: (t.ranks, t.workers, t.start_method or "")))


def _conclusion(report: Report, broken: Sequence[Broken]) -> str:
    if not report.verdicts:
        return "nothing was run"
    if broken:
        checks = len({group.verdict.check for group in broken})
        trials = len({v.trial for v in report.verdicts if v.mark is Mark.FAIL})
        return f"{checks} promise{'s' * (checks != 1)} broken, in {trials} of {_ran(report)} trials"
    if report.stale_known:
        return "no promise broken, but a known file no longer fits"
    if report.summary["inconclusive"]:
        return "no promise broken, but not everything could be told"
    if not report.summary["pass"] + report.summary["known"]:
        return "nothing could be tried"
    return "every promise kept" + (", but for known failures" if report.summary["known"] else "")


def _ran(report: Report) -> int:
    return len({v.trial for v in report.verdicts if v.mark is not Mark.NA})


def _totals(report: Report) -> str:
    summary = report.summary
    parts = [f"{summary[kind]} {word}" for kind, word in _TOTALS.items() if summary[kind] or kind == "pass"]
    return ", ".join(parts)


_TOTALS = {
    "fail": "failed",
    "inconclusive": "inconclusive",
    "pass": "passed",
    "n/a": "not applicable",
    "known": "known",
    "unsteady": "unsteady",
}
