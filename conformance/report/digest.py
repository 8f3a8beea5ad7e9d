"""What every report shows, in the same order for live and for stored runs."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...harness.contract.job import Contract
from ..judging.verdict import Mark, Verdict
from .broken import Broken, First, broken_promises, fix_first
from .model import Report
from .places import MOST_PLACES, Column, column_of, in_words

SIGNS: Mapping[str, tuple[str, str]] = {
    # The worst first: a trial's cell is the first of these that occurs in it. A known failure comes before a pass, so
    # that a clean cell means a clean trial.
    "fail": ("F", "fail"),
    "flaky": ("~", "flaky"),
    "inconclusive": ("?", "inconclusive"),
    "known": ("k", "known failure"),
    "pass": (".", "pass"),
    "n/a": ("-", "not applicable"),
}
"""From the kind of a cell to its sign and its meaning."""


@dataclasses.dataclass(frozen=True)
class Promises:
    """The contract for some sources, with declared and inferred parts separated."""

    sources: tuple[str, ...]
    declared: tuple[str, ...]
    inferred: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Reason:
    """Verdicts that share one reason."""

    check: str
    """Or several, with commas between them; empty if it does not matter which."""
    text: str
    verdicts: int
    trials: tuple[str, ...]
    """Their ids."""
    places: tuple[str, ...]
    """Empty if they are in trials that a failure shown above has cut short."""


@dataclasses.dataclass(frozen=True)
class Digest:
    """A report, ready to be shown."""

    report: Report
    promises: tuple[Promises, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """For each scenario the kind of each cell: a key of :data:`SIGNS`; empty if nothing was run."""
    broken: tuple[Broken, ...]
    first: tuple[First, ...]
    """The distinct promises broken, those that lose the most samples first."""
    flaky: tuple[Reason, ...]
    """All verdicts that were not the same in each run, also those that are not failures."""
    known: tuple[Reason, ...]
    inconclusive: tuple[Reason, ...]
    not_applicable: tuple[Reason, ...]
    """Only for whole trials: why their cells are n/a."""
    conclusion: str
    totals: str


def digest(report: Report) -> Digest:
    """Prepare a report for printing."""
    verdicts = list(report.verdicts)
    cells = _cells(verdicts)
    columns = tuple(dict.fromkeys(column for _, column in cells))
    scenarios = tuple(dict.fromkeys(scenario for scenario, _ in cells))
    ran: dict[str, set[Column]] = collections.defaultdict(set)
    for (scenario, column), kind in cells.items():
        if kind != "n/a":
            ran[scenario].add(column)
    broken = broken_promises(report, ran)
    return Digest(
        report=report,
        promises=_promises(report.contracts),
        columns=columns,
        rows=tuple((name, tuple(cells.get((name, column), "") for column in columns)) for name in scenarios),
        broken=broken,
        first=fix_first(broken),
        flaky=_flaky(verdicts, ran),
        known=_known(verdicts, ran),
        inconclusive=_inconclusive(verdicts, ran),
        not_applicable=_not_applicable(verdicts, cells),
        conclusion=report.conclusion,
        totals=report.totals,
    )


def kind_of(verdict: Verdict) -> str:
    """The key of :data:`SIGNS` for one verdict."""
    if verdict.mark is Mark.FAIL and verdict.flaky is not None:
        return "flaky"
    return verdict.mark.value


def worst(kinds: Collection[str]) -> str:
    """The worst of some kinds; empty if there is none."""
    return next((kind for kind in SIGNS if kind in kinds), "")


def _cells(verdicts: Iterable[Verdict]) -> dict[tuple[str, Column], str]:
    kinds: dict[tuple[str, Column], set[str]] = collections.defaultdict(set)
    for verdict in verdicts:
        kinds[verdict.scenario, column_of(verdict)].add(kind_of(verdict))
    return {cell: worst(found) for cell, found in kinds.items()}


_UNSAID = {"timeout": True, "uneven_ranks": False, "persistent_workers": True, "replacement": False, "readers": "processes",
           "short_batches": "last", "skip_budget": False, "shuffles": True, "order": "seeded", "unshuffled": "source"}
"""Values that nearly every loader has; they are not printed."""


def _promises(contracts: Mapping[str, Contract]) -> tuple[Promises, ...]:
    by_words: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = collections.defaultdict(list)
    for source, contract in contracts.items():
        declared: list[str] = []
        inferred: list[str] = []
        for field in dataclasses.fields(contract):
            value = getattr(contract, field.name)
            if field.name in ("divisible", "inferred") or value is None or _UNSAID.get(field.name) == value:
                continue
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            (inferred if field.name in contract.inferred else declared).append(f"{field.name}={text}")
        by_words[tuple(declared), tuple(inferred)].append(source)
    return tuple(Promises(tuple(sources), *words) for words, sources in by_words.items())


def _known(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Reason, ...]:
    reasons: dict[str, set[str]] = collections.defaultdict(set)
    for verdict in verdicts:
        if verdict.mark is Mark.KNOWN:
            reasons[verdict.trial].add(verdict.reason)
    grouped: dict[tuple[str, str], list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        follows = any(verdict.reason.endswith(f": {reason}") for reason in reasons[verdict.cause_in or verdict.trial])
        if verdict.mark is Mark.KNOWN and not follows:  # what follows from a known failure is shown with it
            grouped[verdict.check, verdict.reason].append(verdict)
    return tuple(_reason(members, ran, check=check) for (check, _), members in grouped.items())


def _flaky(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Reason, ...]:
    """All of them by name, however many there are: a number alone shows nothing to look at."""
    grouped: dict[tuple[str, str], list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.flaky is not None:
            failed, runs = verdict.flaky
            rate = f"failed in {failed} of {runs} runs" if failed else f"{verdict.mark.value} in some of {runs} runs"
            grouped[rate, verdict.check].append(verdict)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = collections.defaultdict(list)
    for (rate, check), members in grouped.items():  # checks that were flaky in the same trials are grouped
        together[rate, tuple(v.trial for v in members)].append(check)
    found = []
    for (rate, _), checks in together.items():
        members = [v for check in checks for v in grouped[rate, check]]
        found.append(dataclasses.replace(_reason(members, ran, check=", ".join(checks), most=None), text=rate))
    return tuple(sorted(found, key=lambda reason: (not reason.text.startswith("failed"), reason.check)))


def _inconclusive(verdicts: Sequence[Verdict], ran: Mapping[str, set[Column]]) -> tuple[Reason, ...]:
    """Those with their own reason first; then those that a failure has cut short, which are many and say little."""
    failing = {verdict.trial for verdict in verdicts if verdict.mark is Mark.FAIL}
    grouped: dict[tuple[bool, str], list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.mark is Mark.INCONCLUSIVE:
            grouped[bool(verdict.cause) and (verdict.cause_in or verdict.trial) in failing, verdict.reason].append(verdict)
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
    members: Sequence[Verdict], ran: Mapping[str, set[Column]], *, check: str = "", told: bool = False, most: int | None = MOST_PLACES
) -> Reason:
    places = () if told else in_words([(verdict.scenario, column_of(verdict)) for verdict in members], ran, most)
    return Reason(check, members[0].reason, len(members), tuple(v.trial for v in members), places)
