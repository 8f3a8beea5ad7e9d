"""Known failures: exceptions that the owner of a loader declares, in TOML, each with its reason.

    loader = "mypkg.loading:*"            # a glob, for all entries without their own; default: every loader

    [[known]]
    check = "no-lost-batches"             # or a list; globs allowed
    scenario = ["segfault", "killed"]     # or a list; globs allowed
    topology = "workers=[1-9]*"           # a glob over "workers=2,ranks=2,spawn"; default: every topology
    source = "map"                        # a glob; default: every source
    loader = "mypkg.loading:*"            # a glob; default: every loader
    reason = "a dead worker takes the batches that it was given with it"
    link = "https://…"                    # optional: where it is followed up
    flaky = true                          # optional: it does not fail each time

``badbatch run --write-known FILE`` writes such a file from a run, with reasons to fill in; it is refused until they are.
An entry that matches nothing, or whose check now holds, is stale and fails the run. Files that come with badbatch are
beside this module.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...harness.contract.choices import START_METHODS
from ...harness.contract.source_names import SOURCES
from ...harness.errors import UserError
from ...harness.nearest import hint, listed, unknown
from ...harness.trial.spec import Topology
from .. import checks, scenarios
from ..judging.verdict import Mark, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:  # the standard library has had it since 3.11
    import tomli as tomllib

_HOME = Path(__file__).parent
_TEXTS = ("check", "scenario", "topology", "source", "loader", "reason", "link")
_SEVERAL = ("check", "scenario")
_REQUIRED = ("check", "scenario", "reason")
_FIELDS = (*_TEXTS, "flaky")
_OLD_NAMES = {"unsteady": "flaky"}  # names that known files older than the present name may still use for a field
_TOP = ("known", "loader")
PLACEHOLDER = "FILL IN: why is this failure accepted?"
"""The reason in a known file that was written from a run (``--write-known``), until the owner replaces it."""

_WILD = set("*?[")

_Trial = tuple[str, str, str, Topology]
_Place = tuple[str, str, str]  # loader, trial, check


@dataclasses.dataclass(frozen=True)
class Known:
    """One declared exception. All fields but the last four are globs."""

    check: str
    scenario: str
    topology: str = "*"
    source: str = "*"
    loader: str = "*"
    reason: str = ""
    link: str = ""
    flaky: bool = False
    """The failure does not occur each time, so a pass does not make the entry stale."""
    where: str = ""
    """File and number of the entry."""

    def covers(self, loader: str, scenario: str, source: str, topology: Topology) -> bool:
        """Whether the entry applies to this trial."""
        pairs = ((loader, self.loader), (scenario, self.scenario), (source, self.source), (str(topology), self.topology))
        return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in pairs)

    def excuses(self, verdict: Verdict) -> bool:
        """Whether the entry applies to this verdict."""
        return fnmatch.fnmatchcase(verdict.check, self.check) and self.covers(*_trial(verdict))

    @property
    def why(self) -> str:
        """The reason, with its link."""
        return f"{self.reason} ({self.link})" if self.link else self.reason

    def __str__(self) -> str:
        where = [f"{name}={value}" for name, value in (("source", self.source), ("loader", self.loader)) if value != "*"]
        inside = ",".join([self.topology, *where])
        return f"{self.where}: {self.check} in {self.scenario}[{inside}]"


def find(name: str) -> Path:
    """The path of a known file: a path as given, or the name of a file that comes with badbatch.

    Raises:
        UserError: there is no such file; the message names the nearest.
    """
    path = Path(name)
    if "/" in name or path.suffix == ".toml":
        if not path.is_file():
            raise UserError(f"there is no known file {name}")
        return path
    shipped = sorted(file.stem for file in _HOME.glob("*.toml"))
    if name not in shipped:
        raise UserError(unknown("known file", name, shipped) + "; or give the path of a .toml file")
    return _HOME / f"{name}.toml"


def load(path: Path) -> list[Known]:
    """The entries of a known file; one that lists several checks or scenarios becomes an entry for each pair of them.

    Raises:
        UserError: all problems of the file, one line each, with the number of the entry.
    """
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise UserError(f"cannot read the known file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from error
    problems = [f"{path}: {_unexpected(name, _TOP)}" for name in data if name not in _TOP]
    entries = data.get("known", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems.append(f"{path}: entries are written as [[known]], with two brackets on either side")
        entries = []
    found: list[Known] = []
    defaults = {"loader": data["loader"]} if "loader" in data else {}
    for number, entry in enumerate(({**defaults, **_renamed(entry)} for entry in entries), 1):
        where = f"{path.name}, entry {number}"
        wrong = list(_problems(entry))
        problems += [f"{path}, entry {number}: {problem}" for problem in wrong]
        if not wrong:
            rest = {name: value for name, value in entry.items() if name not in _SEVERAL}
            pairs = itertools.product(_several(entry["check"]), _several(entry["scenario"]))
            found += [Known(check=check, scenario=scenario, where=where, **rest) for check, scenario in pairs]
    if problems:
        raise UserError("\n".join(problems))
    if waiting := sum(entry.reason == PLACEHOLDER for entry in found):
        raise UserError(
            f'{path}: {waiting} of {len(found)} failures still have the reason "{PLACEHOLDER}": say in each entry why, or remove it'
        )
    return found


def _renamed(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with today's names. An old name beside today's is kept, and then refused as unknown."""
    return {new if (new := _OLD_NAMES.get(name, name)) not in entry else name: value for name, value in entry.items()}


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _problems(entry: dict[str, Any]) -> Iterator[str]:
    for name in entry:
        if name not in _FIELDS:
            yield _unexpected(name, _FIELDS)
    for name in _REQUIRED:
        if name not in entry:
            yield f"{name} is missing"
    for name in _TEXTS:
        if name in entry and (problem := _text_problem(name, entry[name])):
            yield problem
    if not isinstance(entry.get("flaky", False), bool):
        yield f"flaky = {entry['flaky']!r}: must be true or false"


def _text_problem(name: str, value: Any) -> str:
    values = value if isinstance(value, list) and name in _SEVERAL else [value]
    if not values or not all(isinstance(text, str) and text.strip() for text in values):
        return f"{name} = {value!r}: must be a text" + (", or a list of them" if name in _SEVERAL else "")
    problems = (_MEANING[name](text) for text in values if name in _MEANING)
    return "; ".join(problem for problem in problems if problem)


def _one_of(what: str, known: Sequence[str], pattern: str) -> str:
    return "" if fnmatch.filter(known, pattern) else unknown(what, pattern, known, listed(f"{what}s"))


def _topology_problem(pattern: str) -> str:
    """What is wrong with the glob of a topology.

    It cannot be tried on every possible topology, but its parts can be checked.
    """
    words = ("workers=", "ranks=")
    for part in pattern.split(","):
        if part.startswith(words) or _WILD & set(part.partition("=")[0]) or part in START_METHODS:
            continue
        near = hint(part.partition("=")[0] + "=" * ("=" in part), [*words, *START_METHODS], "")
        return f'topology = {pattern!r}: {part!r} is no part of one, like "workers=2,ranks=2,spawn"{near}'
    return ""


_MEANING = {
    "check": lambda pattern: _one_of("check", list(checks.registry()), pattern),
    "scenario": lambda pattern: _one_of("scenario", scenarios.names(), pattern),
    "source": lambda pattern: _one_of("source", SOURCES, pattern),
    "topology": _topology_problem,
}


def _unexpected(name: str, known: Sequence[str]) -> str:
    return unknown("key", name, known)


def apply(verdicts: Sequence[Verdict], entries: Sequence[Known]) -> tuple[list[Verdict], list[str]]:
    """Mark the declared failures, and find the entries whose failures no longer occur.

    A failure becomes known by its own entry, or because the failure that explains it is known. So
    does a verdict that is inconclusive only because that failure cut the trial short.

    Returns:
        The verdicts, in their order; and one line for each stale entry. An entry is judged only if trials that it
        applies to were part of the run, and its check was.
    """
    excused: dict[_Place, str] = {}
    for verdict in verdicts:
        if verdict.mark is Mark.FAIL:
            reason = next((entry.why for entry in entries if entry.excuses(verdict)), None)
            if reason is not None:
                excused[_place(verdict)] = reason
    by_place = {_place(verdict): verdict for verdict in verdicts}
    marked = [_marked(verdict, by_place, excused) for verdict in verdicts]
    return marked, [text for entry in entries if (text := _stale(entry, verdicts))]


def _trial(verdict: Verdict) -> _Trial:
    return verdict.loader, verdict.scenario, verdict.source, verdict.topology


def _place(verdict: Verdict) -> _Place:
    return verdict.loader, verdict.trial, verdict.check


def _behind(verdict: Verdict) -> _Place:
    """The place of the verdict that explains another one."""
    return verdict.loader, verdict.cause_in or verdict.trial, verdict.cause


def _marked(verdict: Verdict, by_place: dict[_Place, Verdict], excused: dict[_Place, str]) -> Verdict:
    if (reason := excused.get(_place(verdict))) is not None:
        return dataclasses.replace(verdict, mark=Mark.KNOWN, reason=reason)
    behind = by_place.get(_behind(verdict)) if verdict.cause else None
    seen = {_place(verdict)}
    while behind is not None and _place(behind) not in seen:
        if (reason := excused.get(_place(behind))) is not None:
            where = f" in {behind.trial}" if behind.trial != verdict.trial else ""
            return dataclasses.replace(verdict, mark=Mark.KNOWN, reason=f"follows from {behind.check}{where}: {reason}")
        seen.add(_place(behind))
        behind = by_place.get(_behind(behind)) if behind.cause else None
    return verdict


def _stale(entry: Known, verdicts: Sequence[Verdict]) -> str:
    run = {_trial(verdict) for verdict in verdicts if verdict.mark is not Mark.NA}
    covered = {trial for trial in run if entry.covers(*trial)}
    judged = any(fnmatch.fnmatchcase(verdict.check, entry.check) for verdict in verdicts)
    if not covered or not judged:
        return ""
    marks = {v.mark for v in verdicts if entry.excuses(v) and _trial(v) in covered and v.mark is not Mark.NA}
    if not marks:
        return f"{entry}: matches nothing, no trial there puts this check to the loader; remove the entry"
    if marks == {Mark.PASS} and not entry.flaky:
        return f"{entry}: the check holds now; remove the entry"
    return ""
