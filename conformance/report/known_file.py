"""Writes a known file from a run: one entry for each defect, with a reason that the loader's owner must fill in."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Collection, Iterator, Sequence

from ...harness.trial.spec import Topology
from ..judging.verdict import Mark, Verdict
from ..known import PLACEHOLDER
from .headline import by_trial
from .model import Report
from .printable import printable

_HEAD = """\
# Known failures, written by badbatch from a run.
# Replace each reason by why the failure is accepted, and remove the entries of what you fix: badbatch refuses the file
# until every reason is filled in. docs/loaders.md says what else an entry can contain.
"""
_WITH_WORKERS = "workers=[1-9]*"


@dataclasses.dataclass(frozen=True)
class _Defect:
    """What the failures of one entry share."""

    loader: str
    check: str
    diagnosis: str
    flaky: bool


def dumps(reports: Sequence[Report]) -> str:
    """The failures of some reports as a known file, except those that a known file of the run excuses.

    What follows from another failure has no entry of its own: it is known with that one. An entry covers only trials
    that failed, as far as the run shows.
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
    for several in by_trial(report.verdicts).values():
        for verdict, root in several:
            if verdict is root:
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
    defect: _Defect, example: Verdict, scenarios: Sequence[str], source: str, topology: str, with_loader: bool
) -> str:
    lines = [f"# {label}: {printable(text)}" for label, text in _seen(example) if text]
    lines += ["[[known]]", f"check = {_quoted(defect.check)}"]
    listed = ", ".join(map(_quoted, scenarios))
    lines.append(f"scenario = {listed}" if len(scenarios) == 1 else f"scenario = [{listed}]")
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


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's form is valid after unprintable characters were removed."""
    return json.dumps(printable(text), ensure_ascii=False)
