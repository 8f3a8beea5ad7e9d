"""Writes a known file from a run: one entry for each defect, with a reason that the loader's owner must fill in."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from collections.abc import Collection, Iterator, Sequence

from ...harness.errors import UserError
from ...harness.trial.spec import Topology
from ..judging.verdict import Mark, Verdict
from ..known import PLACEHOLDER
from ..scenarios import find as find_scenario
from .headline import by_trial
from .model import Report
from .printable import printable

_HEAD = """\
# Known failures, written by badbatch from a run.
# Replace each reason by why the failure is accepted, and remove the entries of what you fix: badbatch refuses the file
# until every reason is filled in. docs/loaders.md says what else an entry can contain.
"""
_WITH_WORKERS = "workers=[1-9]*"
_OF_DEATHS = ("finite-epoch", "no-lost-batches", "crash-surfaces", "no-leftovers")
"""Checks of which one or another fails after the death of a worker, depending on what it was doing at that moment."""
_VARIES = "what a worker's death does differs from run to run, so one of these checks fails in one run and another in the next"


@dataclasses.dataclass(frozen=True)
class _Defect:
    """What the failures of one entry share."""

    loader: str
    check: str | Sequence[str]
    diagnosis: str
    flaky: bool


def dumps(reports: Sequence[Report]) -> str:
    """The failures of some reports as a known file, except those that a known file of the run excuses.

    What follows from another failure has no entry of its own: it is known with that one. An entry covers only trials
    that failed, as far as the run shows; but where the outcome of a worker's death differs between runs, one entry
    covers all deaths of workers and all checks that one of them can fail.
    """
    blocks = [_HEAD]
    if len(reports) == 1:
        blocks.append(f"loader = {_quoted(reports[0].loader)}\n")
    for report in reports:
        blocks += _entries(report, with_loader=len(reports) > 1)
    if not any(verdict.mark is Mark.FAIL for report in reports for verdict in report.verdicts):
        blocks.append("# The run had no failure to write down.\n")
    return "\n".join(blocks)


def _entries(report: Report, with_loader: bool) -> Iterator[str]:
    roots: dict[_Defect, list[Verdict]] = collections.defaultdict(list)
    deaths = _Deaths.of(report.verdicts)
    yield from deaths.entries(with_loader)
    for several in by_trial(report.verdicts).values():
        for verdict, root in several:
            if verdict is root and not deaths.cover(verdict):
                diagnosis = verdict.diagnosis.id if verdict.diagnosis else ""
                roots[_Defect(verdict.loader, verdict.check, diagnosis, verdict.flaky is not None)].append(verdict)
    ran: dict[tuple[str, str], set[Topology]] = collections.defaultdict(set)
    for verdict in report.verdicts:
        if verdict.mark is not Mark.NA:
            ran[verdict.scenario, verdict.source].add(verdict.topology)
    for defect, verdicts in roots.items():
        for (source, topology), scenarios in _places(verdicts, ran).items():
            example = next(v for v in verdicts if v.scenario in scenarios and source in ("", v.source))
            yield _entry(defect, example, scenarios, source, topology, with_loader)


@dataclasses.dataclass(frozen=True)
class _Deaths:
    """The deaths of workers after which not the same check failed each time; none where it did, or none failed."""

    verdicts: Sequence[Verdict]
    """Those of the trials in which a worker dies, from the sources in which one failed."""
    checks: Sequence[str]
    """The checks of which one or another fails."""

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> _Deaths:
        """Those of a run."""
        dying = [v for v in verdicts if v.mark is not Mark.NA and v.topology.workers and _kills(v)]
        if not _differ([v for v in dying if v.check in _OF_DEATHS]):
            return cls((), ())
        asked = {v.check for v in dying}
        others = {v.check for v in dying if v.mark is Mark.FAIL and v.flaky is not None and not v.cause} - set(_OF_DEATHS)
        checks = [check for check in _OF_DEATHS if check in asked] + sorted(others)
        sources = {v.source for v in dying if v.mark is Mark.FAIL and v.check in checks}
        return cls([v for v in dying if v.source in sources], checks)

    def cover(self, verdict: Verdict) -> bool:
        """Whether their entries excuse a failure."""
        return verdict.check in self.checks and verdict.trial in self._trials

    @functools.cached_property
    def _trials(self) -> frozenset[str]:
        return frozenset(verdict.trial for verdict in self.verdicts)

    def entries(self, with_loader: bool) -> Iterator[str]:
        """One entry for each source; one for all that have the same scenarios."""
        places: dict[tuple[tuple[str, ...], tuple[Topology, ...]], dict[str, None]] = collections.defaultdict(dict)
        for source in dict.fromkeys(verdict.source for verdict in self.verdicts):
            mine = [verdict for verdict in self.verdicts if verdict.source == source]
            scenarios = tuple(dict.fromkeys(verdict.scenario for verdict in mine))
            places[scenarios, tuple(dict.fromkeys(verdict.topology for verdict in mine))][source] = None
        for (scenarios, topologies), sources in places.items():
            for source in [""] if len(places) == 1 else sources:
                failed = [v for v in self.verdicts if v.mark is Mark.FAIL and v.check in self.checks and source in ("", v.source)]
                defect = _Defect(failed[0].loader, self.checks, "", flaky=True)
                for topology in _globs(topologies, topologies):
                    yield _entry(defect, failed[0], scenarios, source, topology, with_loader, because=_VARIES)


def _kills(verdict: Verdict) -> str:
    """How the scenario of a verdict ends a worker; empty: it does not, or is not known here."""
    try:
        return find_scenario(verdict.scenario, verdict.source).kills
    except UserError:
        return ""


def _differ(verdicts: Sequence[Verdict]) -> bool:
    """Whether not the same checks fail after each death: in the runs of one trial, or after different signals in one topology."""
    if any(verdict.mark is Mark.FAIL and verdict.flaky is not None for verdict in verdicts):
        return True
    failed: dict[tuple[str, Topology, str], dict[str, set[str]]] = collections.defaultdict(lambda: collections.defaultdict(set))
    for verdict in verdicts:
        checks = failed[verdict.source, verdict.topology, _kills(verdict)][verdict.scenario]
        if verdict.mark is Mark.FAIL:
            checks.add(verdict.check)
    return any(len(set(map(frozenset, by_scenario.values()))) > 1 for by_scenario in failed.values())


def _places(
    verdicts: Sequence[Verdict], ran: dict[tuple[str, str], set[Topology]]
) -> dict[tuple[str, str], list[str]]:
    """From (source, topology), as globs, to the scenarios that failed exactly there; an empty source: all that were run."""
    failed: dict[tuple[str, str], set[Topology]] = collections.defaultdict(set)
    for verdict in verdicts:
        failed[verdict.scenario, verdict.source].add(verdict.topology)
    sources: dict[tuple[str, str], set[str]] = collections.defaultdict(set)  # by scenario and glob of the topology
    for (scenario, source), shapes in failed.items():
        for glob in _globs(shapes, ran[scenario, source]):
            sources[scenario, glob].add(source)
    found: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for (scenario, glob), some in sources.items():
        every = {source for name, source in ran if name == scenario}
        for source in [""] if some == every else sorted(some):
            found[source, glob].append(scenario)
    return found


def _globs(failed: Collection[Topology], ran: Collection[Topology]) -> list[str]:
    """The globs that cover the topologies which failed, and no others of those that were run."""
    if set(failed) == set(ran) and len(ran) > 1:
        return ["*"]
    if len(failed) > 1 and set(failed) == {topology for topology in ran if topology.workers}:
        return [_WITH_WORKERS]
    return sorted(str(topology) for topology in failed)


def _entry(
    defect: _Defect,
    example: Verdict,
    scenarios: Sequence[str],
    source: str,
    topology: str,
    with_loader: bool,
    because: str = "",
) -> str:
    lines = [f"# {label}: {printable(text)}" for label, text in (*_seen(example), ("flaky", because)) if text]
    checks = [defect.check] if isinstance(defect.check, str) else defect.check
    lines += ["[[known]]", f"check = {_listed(checks)}", f"scenario = {_listed(scenarios)}"]
    if topology != "*":
        lines.append(f"topology = {_quoted(topology)}")
    if source:
        lines.append(f"source = {_quoted(source)}")
    if with_loader:
        lines.append(f"loader = {_quoted(defect.loader)}")
    if defect.flaky:
        lines.append("flaky = true")
    return "\n".join([*lines, f"reason = {_quoted(PLACEHOLDER)}"]) + "\n"


def _seen(verdict: Verdict) -> list[tuple[str, str]]:
    likely = f"{verdict.diagnosis.text} [{verdict.diagnosis.id}]" if verdict.diagnosis else ""
    return [("happened", f"{verdict.happened} ({verdict.trial})"), ("likely", likely), ("again", verdict.replay)]


def _listed(names: Sequence[str]) -> str:
    return _quoted(names[0]) if len(names) == 1 else f"[{', '.join(map(_quoted, names))}]"


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's form is valid after unprintable characters were removed."""
    return json.dumps(printable(text), ensure_ascii=False)
