"""The one table of options: pytest's flags and ini keys, the command's flags, their help and the docs page are made from it.

Imports nothing heavy: the pytest plugin reads the table on every start of pytest, also without ``--loader``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ...harness.errors import UserError
from ...harness.nearest import hint

Place = Literal["pytest", "command"]

START_METHODS = ("fork", "spawn", "forkserver")
PERSISTENT = ("auto", "always", "never")
ISOLATIONS = ("auto", "fork", "spawn")
_PLATFORM = "default"  # the word for the platform's own start method, None in Options


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{text!r} is not a whole number") from None


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_whole(part.strip()) for part in text.split(",") if part.strip()))


def _yes_or_no(text: str) -> bool:
    try:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.strip().lower()]
    except KeyError:
        raise UserError(f"{text!r} must be true or false") from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{text!r} is not a number of seconds") from None


def _words(text: str) -> tuple[str | None, ...]:
    words = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    return tuple(None if word == _PLATFORM else word for word in words)


def _at_least(least: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        return f"must be at least {least}, not {value}" if value < least else ""

    return check


def _several_at_least(least: int, noun: str) -> Callable[[Any], str]:
    def check(values: Any) -> str:
        if not values:
            return "is empty: give one or more, with commas between them"
        return f"a trial cannot have {min(values)} {noun}" if min(values) < least else ""

    return check


def _positive(value: float) -> str:
    return "" if 0 < value < float("inf") else f"must be a number of seconds above 0, not {value:g}"


def _one_of(choices: Sequence[str]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value in choices:
            return ""
        return f"{value!r} is none of {', '.join(choices)}{hint(value, choices, '')}"

    return check


def _start_methods(values: Any) -> str:
    if not values:
        return f"is empty: give one or more of {', '.join(START_METHODS)}"
    problems = [_one_of(START_METHODS)(value) for value in values if value is not None]
    return next((problem for problem in problems if problem), "")


def _anything(value: Any) -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of both places."""

    name: str
    """As on the command line, without prefix: ``batch-size``."""
    help: str
    metavar: str
    default: str = ""
    """As a user would write it; empty: no value."""
    field: str | None = None
    """The field of :class:`Options`; None: not an option of the suite but of the command (where a report is written)."""
    convert: Callable[[str], Any] = str
    check: Callable[[Any], str] = _anything
    """What is wrong with a converted value, as the end of a sentence; empty: nothing."""
    repeatable: bool = False
    """May be given several times; an ini file gives several on lines of their own, or with blanks between them."""
    is_path: bool = False
    """A relative path in an ini file starts from that file's folder."""
    is_flag: bool = False
    """Takes no value on the command line; ``true`` or ``false`` in an ini file."""
    places: tuple[Place, ...] = ("pytest", "command")
    in_ini: bool = True
    """Also an ini key of pytest; else it belongs to one command line alone."""

    @property
    def flag_for_pytest(self) -> str:
        """``--loader-batch-size``."""
        return "--loader" if self.name == "loader" else f"--loader-{self.name}"

    @property
    def flag_for_cli(self) -> str:
        """``--batch-size``; the loader itself is an argument there."""
        return f"--{self.name}"

    @property
    def ini(self) -> str:
        """``loader_batch_size``: the key in pytest's ini file, and pytest's name for the flag's value."""
        return self.flag_for_pytest[2:].replace("-", "_")

    @property
    def ini_type(self) -> Literal["args", "string"]:
        """The type that pytest's ``addini`` gets."""
        return "args" if self.repeatable else "string"

    @property
    def full_help(self) -> str:
        """The help with the default and whether it may be repeated, as both places print it."""
        tail = " (may be given more than once)" if self.repeatable else ""
        return f"{self.help}{tail}{f' [default: {self.default}]' if self.default else ''}"

    def parse(self, text: str, where: str, folder: Path | None = None) -> Any:
        """Convert one text to the option's value, and check it.

        Args:
            where: what gave the text, for the message: ``--loader-workers``, ``loader_workers in pytest.ini``.
            folder: where a relative path starts from; None: the current directory.

        Raises:
            UserError: one line that begins with ``where``.
        """
        try:
            value = self.convert(text)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if problem := self.check(value):
            raise UserError(f"{where}: {problem}")
        if self.is_path and folder is not None and _looks_like_a_path(self, str(text)):
            return type(value)(folder / value)
        return value

    def value(self, given: str | Sequence[str] | bool | None, where: str, folder: Path | None = None) -> Any:
        """The value of what was given: one text, or several for a repeatable option; nothing: the default.

        Raises:
            UserError: as :meth:`parse`.
        """
        if self.is_flag:
            return self.parse(given, where) if isinstance(given, str) and given.strip() else given is True
        if isinstance(given, bool):
            raise TypeError(f"{self.name} takes a value")
        texts = [given] if isinstance(given, str) else list(given or ())
        texts = [text for text in texts if text.strip()]
        if self.repeatable:
            return tuple(self.parse(text, where, folder) for text in texts)
        if texts:
            return self.parse(texts[-1], where, folder)
        return self.parse(self.default, "the default") if self.default else None


def _looks_like_a_path(option: Option, text: str) -> bool:
    # A known file may be given by the bare name of one that comes with badbatch; - is standard output.
    return text != "-" and (option.name != "known" or "/" in text or text.endswith(".toml"))


# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("loader", "The loader to hold to its promises: pkg.module:attr.", "LOADER", repeatable=True, places=("pytest",)),
    Option("only", "Run only the suite, and none of your own tests.", "", is_flag=True, places=("pytest",), in_ini=False),
    Option("off", "Run only your own tests, and not the suite.", "", is_flag=True, places=("pytest",), in_ini=False),
    Option("workers", "Worker counts, with commas between them.", "N,N…", "0,2", "workers", _wholes,
           _several_at_least(0, "workers")),
    Option("ranks", "Numbers of ranks, with commas between them.", "N,N…", "1,2", "ranks", _wholes,
           _several_at_least(1, "ranks")),
    Option("samples", "Samples in the source, unless the scenario sets it.", "N", "40", "samples", _whole, _at_least(8)),
    Option("batch-size", "Samples in a batch, unless the scenario sets it.", "N", "4", "batch_size", _whole, _at_least(1)),
    Option("quick", "Ask only the ten scenarios and two topologies that find most of what can be wrong: a first look, no "
           "verdict on the loader.", "", field="quick", convert=_yes_or_no, is_flag=True),
    Option("scenario", "Only scenarios whose name matches this glob.", "NAME", field="scenarios", repeatable=True),
    Option("not-scenario", "Leave out scenarios whose name matches this glob.", "NAME", field="not_scenarios", repeatable=True),
    Option("check", "Only checks whose name matches this glob.", "NAME", field="checks", repeatable=True),
    Option("not-check", "Leave out checks whose name matches this glob.", "NAME", field="not_checks", repeatable=True),
    Option("timeout", "The job's timeout in timed scenarios; longer where the loader starts slowly.", "SECONDS", "1.0", "timeout",
           _seconds, _positive),
    Option("deadline", "Seconds after which a trial is cut.", "SECONDS", "30", "deadline", _seconds, _positive),
    Option("start-method", f"How workers are started: {', '.join(START_METHODS)}, or {_PLATFORM} (the platform's own); several "
           "with commas between them.", "METHOD,…", _PLATFORM, "start_methods", _words, _start_methods),
    Option("persistent-workers", "Ask for workers that stay for the next epoch, from loaders that support it: in scenarios with several "
           "epochs at 1 rank (auto), always, or never.", "auto|always|never", "auto", "persistent_workers", str,
           _one_of(PERSISTENT)),
    Option("isolation", "A trial runs in a fork of a zygote (fork), or in a new interpreter (spawn).",
           "auto|fork|spawn", "auto", "isolation", str, _one_of(ISOLATIONS)),
    Option("jobs", "How many trials run at once; the default depends on the number of processors.", "N", "", "jobs", _whole, _at_least(1)),
    Option("seed", "The seed that every shuffle is drawn from.", "N", "0", "seed", _whole, _at_least(0)),
    Option("repeat", "Run each trial N times; a verdict that is not the same each time is flaky.", "N", "1", "repeat",
           _whole, _at_least(1)),
    Option("known", "A TOML file of known failures, or the name of one that comes with badbatch.", "FILE", field="known",
           repeatable=True, is_path=True),
    Option("keep", "Keep the folders of all trials here, to be run or judged again; without it those of failing trials are kept, "
           "in pytest's cache folder or, by the command, in .badbatch.", "DIR", "", "keep", Path, is_path=True),
    Option("json", "Write the report as JSON (docs/report-schema.md); - is standard output.", "FILE", convert=Path,
           is_path=True),
    Option("html", "Write the report as one self-contained HTML file.", "FILE", convert=Path, is_path=True),
    Option("write-known", "Write the failures of this run as a new known file, with reasons to fill in.", "FILE", convert=Path,
           is_path=True),
    Option("junit", "Write the verdicts as JUnit XML.", "FILE", convert=Path, places=("command",)),
)
# fmt: on

BY_NAME: Mapping[str, Option] = {option.name: option for option in OPTIONS}


@dataclasses.dataclass(frozen=True)
class Options:
    """The settings of a run of the suite.

    Raises:
        UserError: a value that cannot be, or two that contradict each other.
    """

    workers: tuple[int, ...] = (0, 2)
    ranks: tuple[int, ...] = (1, 2)
    samples: int = 40
    """Where the scenario does not say; at least 8, so that a scenario with a damaged batch has a whole one as well."""
    batch_size: int = 4
    """Where the scenario does not say."""
    quick: bool = False
    """Only the scenarios and topologies of :mod:`badbatch.conformance.scenarios.quick`."""
    scenarios: tuple[str, ...] = ()
    """Globs; none: all."""
    not_scenarios: tuple[str, ...] = ()
    """Globs of scenarios that are left out."""
    checks: tuple[str, ...] = ()
    """Globs; none: all."""
    not_checks: tuple[str, ...] = ()
    """Globs of checks that are left out."""
    timeout: float = 1.0
    """Seconds: the job's, in scenarios that have one."""
    deadline: float = 30.0
    """Seconds: after them a trial is ended from outside."""
    start_methods: tuple[str | None, ...] = (None,)
    """None: the platform's own."""
    persistent_workers: Literal["auto", "always", "never"] = "auto"
    """When the workers of one epoch are asked to serve the next one too."""
    isolation: Literal["auto", "fork", "spawn"] = "auto"
    jobs: int | None = None
    """Trials at once; None: as many as the processors allow."""
    seed: int = 0
    repeat: int = 1
    known: tuple[str, ...] = ()
    """Paths of known files, or names of those that come with badbatch."""
    keep: Path | None = None
    """Where the folders of all trials are kept; None: only those of failing ones, where the command says."""

    def __post_init__(self) -> None:
        problems = []
        for option in OPTIONS:
            if option.field is None or option.repeatable:
                continue
            value = getattr(self, option.field)
            if value is not None and (problem := option.check(value)):
                problems.append(f"{option.field}: {problem}")
        problems += [f"{' and '.join(names)}: {text}" for names, text in _contradictions(dataclasses.asdict(self))]
        if problems:
            raise UserError("\n".join(problems))


def _contradictions(values: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Fields that contradict each other, and why; each field alone is valid."""
    found: list[tuple[tuple[str, ...], str]] = []
    if values["quick"] and values["scenarios"]:
        found.append((("quick", "scenarios"), "the first chooses the scenarios by itself: give one of the two"))
    timeout, deadline = values["timeout"], values["deadline"]
    if deadline < 2 * timeout + 1:
        text = f"a trial of {deadline:g} s leaves no time to see a timeout of {timeout:g} s"
        found.append((("timeout", "deadline"), f"{text}: the deadline must be at least {2 * timeout + 1:g} s"))
    if values["batch_size"] * 2 > values["samples"]:  # else the damaged batch would be the only one
        text = f"{values['samples']} samples make fewer than two batches of {values['batch_size']}"
        found.append((("samples", "batch_size"), f"{text}: no batch would be left beside a damaged one"))
    if any(values["start_methods"]) and not any(values["workers"]):
        found.append((("workers", "start_methods"), "without workers no start method plays a part"))
    if values["persistent_workers"] == "always" and not any(values["workers"]):
        found.append((("workers", "persistent_workers"), "without workers there are none that could stay"))
    return found


def to_options(
    values: Mapping[str, str | Sequence[str] | bool | None],
    sources: Mapping[str, str] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Options:
    """The suite's options from texts, by the names of :data:`OPTIONS`; names that are not the suite's are passed over.

    Args:
        values: the text of each option, or several texts for a repeatable one; missing, None or empty: the default.
        sources: what gave each, for messages: ``--loader-workers``, ``loader_workers in pytest.ini``.
        folders: where the relative paths of an option start from; missing: the current directory.

    Raises:
        UserError: one line for each wrong or contradictory value, which begins with its source.
    """
    fields: dict[str, Any] = {}
    where: dict[str, str] = {}
    problems: list[str] = []
    for option in OPTIONS:
        if option.field is None:
            continue
        where[option.field] = (sources or {}).get(option.name, option.name)
        try:
            fields[option.field] = option.value(
                values.get(option.name), where[option.field], (folders or {}).get(option.name)
            )
        except UserError as error:
            problems.append(str(error))
    if not problems:
        problems = [f"{' and '.join(where[name] for name in names)}: {text}" for names, text in _contradictions(fields)]
    if problems:
        raise UserError("\n".join(problems))
    return Options(**fields)


_WHAT_RUNS = """
## What pytest runs

Your own tests run whenever pytest would collect them without badbatch. The suite is added to them:

| command | your own tests | the suite |
| --- | --- | --- |
| `pytest`, with `loader` in the ini file | all that pytest collects (`testpaths`, or the current folder) | runs |
| `pytest --loader …` | all that pytest collects | runs |
| `pytest test_a.py`, with `loader` in the ini file | `test_a.py` | – |
| `pytest --loader … test_a.py` | `test_a.py` | runs |
| `pytest 'badbatch::one-bad[workers=2]'` | – | the named node ids |
| `pytest 'badbatch::one-bad[workers=2]' test_a.py` | `test_a.py` | the named node ids |
| `pytest --loader-only` | – | runs |
| `pytest --loader-off` | all that pytest collects, or the paths that are given | – |

`--loader` in `addopts` or in `PYTEST_ADDOPTS` counts as the ini key does. `--loader-only` together with paths is refused, and so is
`--loader-off` together with node ids of the suite. It is the same with pytest-xdist.
"""


def documentation() -> str:
    """The docs page on the options, in Markdown."""
    lines = [
        "# Options",
        "",
        "The same options for `pytest --loader …` and for `badbatch run`; the ini keys belong in pytest's own file",
        "(`pytest.ini`, `pyproject.toml`, `tox.ini`). A flag goes before an ini key.",
        "",
        "| pytest | ini key | `badbatch run` | value | default | what it does |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for option in OPTIONS:
        pytest_flag = f"`{option.flag_for_pytest}`" if "pytest" in option.places else "–"
        ini = f"`{option.ini}`" if "pytest" in option.places and option.in_ini else "–"
        command = (
            f"`{option.flag_for_cli}`"
            if "command" in option.places
            else "an argument"
            if option.name == "loader"
            else "–"
        )
        metavar = "`" + option.metavar.replace("|", "\\|") + "`" if option.metavar else ""
        repeat = " May be given more than once." if option.repeatable else ""
        lines.append(
            f"| {pytest_flag} | {ini} | {command} | {metavar} | {f'`{option.default}`' if option.default else ''} "
            f"| {option.help}{repeat} |"
        )
    return "\n".join(lines) + "\n" + _WHAT_RUNS
