"""The settings of a run of the suite, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...harness.contract.choices import Isolation, PersistentWorkers
from ...harness.errors import UserError
from .table import OPTIONS


def _default(field: str) -> Any:
    """The default of a field, from the table of options."""
    option = next(option for option in OPTIONS if option.field == field)
    return option.value(None, option.name)


@dataclasses.dataclass(frozen=True)
class Options:
    """The settings of a run of the suite; the defaults are those of the table of options.

    Raises:
        UserError: an invalid value, or two values that contradict each other.
    """

    workers: tuple[int, ...] = _default("workers")
    ranks: tuple[int, ...] = _default("ranks")
    samples: int = _default("samples")
    """Used if the scenario does not set it; at least 8, so that a scenario with a damaged batch also has a
    whole one."""
    batch_size: int = _default("batch_size")
    """Used if the scenario does not set it."""
    quick: bool = False
    """Only the scenarios and topologies of :mod:`badbatch.conformance.scenarios.quick`."""
    scenarios: tuple[str, ...] = ()
    """Globs; none: all."""
    not_scenarios: tuple[str, ...] = ()
    """Globs of scenarios that are left out."""
    sources: tuple[str, ...] = ()
    """Globs; none: all that the loader declares."""
    checks: tuple[str, ...] = ()
    """Globs; none: all."""
    not_checks: tuple[str, ...] = ()
    """Globs of checks that are left out."""
    timeout: float = _default("timeout")
    """Seconds: the job's, in scenarios that have one."""
    deadline: float = _default("deadline")
    """Seconds after which a trial is ended from outside."""
    start_methods: tuple[str | None, ...] = _default("start_methods")
    """None: the platform's own."""
    persistent_workers: PersistentWorkers = _default("persistent_workers")
    """When the workers of one epoch must also serve the next one."""
    isolation: Isolation = _default("isolation")
    jobs: int | None = None
    """Trials at once; None: as many as the processors allow."""
    seed: int = _default("seed")
    repeat: int = _default("repeat")
    known: tuple[str, ...] = ()
    """Paths of known files, or names of those that come with badbatch."""
    keep: Path | None = None
    """Where the folders of all trials are kept; None: only those of failing ones, where the command decides."""

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
    if values["batch_size"] * 2 > values["samples"]:  # otherwise the damaged batch would be the only one
        text = f"{values['samples']} samples make fewer than two batches of {values['batch_size']}"
        found.append((("samples", "batch_size"), f"{text}: no batch would be left beside a damaged one"))
    if any(values["start_methods"]) and not any(values["workers"]):
        found.append((("workers", "start_methods"), "without workers the start method has no effect"))
    if values["persistent_workers"] == "always" and not any(values["workers"]):
        found.append((("workers", "persistent_workers"), "without workers there are none to keep"))
    return found


def to_options(
    values: Mapping[str, str | Sequence[str] | bool | None],
    sources: Mapping[str, str] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Options:
    """The suite's options from texts, by the names of :data:`OPTIONS`; names that are not the suite's are ignored.

    Args:
        values: the text of each option, or several texts for a repeatable one; missing, None or empty: the default.
        sources: the origin of each, for messages: ``--loader-workers``, ``loader_workers in pytest.ini``.
        folders: the folder for the relative paths of an option; missing: the current directory.

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
