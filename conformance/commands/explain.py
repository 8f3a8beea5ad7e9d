"""What every check, scenario, fault and diagnosis is, in words: made from the registries."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial

from ...harness import faults
from ...harness.contract.job import Contract
from ...harness.contract.source_names import DEFAULT
from ...harness.corpus.base import DiskFault
from ...harness.corpus.damage import disk_faults
from ...harness.corpus.stored import Stored
from ...harness.errors import UserError
from ...harness.nearest import hint, listed
from ...harness.plan import FaultPlan
from ...harness.trial.phases import in_words
from ...harness.trial.spec import Topology, TrialSpec
from .. import checks, diagnoses
from ..checks.base import spans
from ..diagnoses.base import Entry
from ..options import Options
from ..report.formats import comparison_formats, report_formats
from ..scenarios import ON_DISK, PLAIN, names
from ..scenarios.base import Scenario
from ..scenarios.disk import FILES, Damage, DiskScenario
from . import glossary
from .kinds import KINDS

_EXAMPLE = Topology(workers=2, ranks=2)
_DEFAULTS = Options()


@dataclasses.dataclass(frozen=True)
class Article:
    """Everything that is known about one name."""

    kind: str
    """``check``, ``scenario``, ``fault``, ``diagnosis``, ``source``, ``format`` or ``word``."""
    name: str
    title: str
    parts: tuple[tuple[str, str], ...]
    """(label, text), in order."""


def find(name: str) -> list[Article]:
    """Everything that has this name: a scenario may have the same name as its fault, and a word may have other forms.

    Raises:
        UserError: nothing has; the message names the nearest.
    """
    found = [articles[name]() for articles in _ARTICLES.values() if name in articles]
    other = _ALSO.get(name) or _ALSO.get(name.lower(), name.lower())
    if not found and other in _ARTICLES["words"]:
        found = [_ARTICLES["words"][other]()]
    if not found:
        names = [*(known for articles in _ARTICLES.values() for known in articles), *_ALSO]
        otherwise = listed("|".join(KINDS))
        raise UserError(f"nothing is called {name!r}{hint(name, names, otherwise)}")
    return found


def names_of(kind: str) -> list[str]:
    """The names of one kind (a key of :data:`KINDS`), in the order of its registry."""
    return list(_ARTICLES[kind])


def listing(kind: str) -> list[tuple[str, str]]:
    """(name, title) of everything of one kind."""
    return [(name, article().title) for name, article in _ARTICLES[kind].items()]


def _check(check: checks.Promise) -> Article:
    exercising = [scenario.name for scenario in PLAIN if check.exercised(example(scenario))]
    everywhere = len(exercising) == len(PLAIN)
    on_disk = [scenario.name for scenario in ON_DISK if check.exercised(example_on_disk(scenario))]
    explains = ", ".join(check.implies)
    parts = [
        ("why", check.why),
        *_compared(check),
        ("judged on", inspect.getdoc(check.function) or ""),
        ("from", check.source),
        ("tried in", "every scenario" if everywhere else ", ".join(exercising)),
        ("on disk in", "every scenario" if len(on_disk) == len(ON_DISK) else ", ".join(on_disk)),
        ("explains", explains),
        ("follows", ", ".join(check.explained_by) if isinstance(check, checks.Relation) else ""),
    ]
    return _article("check" if isinstance(check, checks.Check) else "relation", check.id, check.title, parts)


def _compared(check: checks.Promise) -> list[tuple[str, str]]:
    """The roles of a relation, in words."""
    if not isinstance(check, checks.Relation):
        return []
    return [("compares", "; ".join(f"{role.name}: {role.words}" for role in check.roles))]


def _scenario_of(name: str) -> Article:
    """In memory, on disk, or both."""
    on_disk = next((scenario for scenario in ON_DISK if scenario.name == name), None)
    found = next((_scenario(scenario) for scenario in PLAIN if scenario.name == name), None)
    if on_disk is None:
        assert found is not None
        return found
    struck = "; ".join(f"{kind}: {_damage_of(on_disk.on[kind])}" for kind in on_disk.on)
    if found is not None:
        return dataclasses.replace(found, parts=(*found.parts, ("on disk", struck)))
    exercised = [check.id for check in checks.registry().values() if check.exercised(example_on_disk(on_disk))]
    parts = [
        ("on disk", struck),
        ("settings", _settings(on_disk)),
        ("where", _ONLY_WITH_WORKERS if on_disk.needs_workers else ""),
        ("tries", ", ".join(exercised)),
    ]
    return _article("scenario", name, on_disk.why, parts)


def _damage_of(damage: Damage) -> str:
    faults = ", ".join(dict.fromkeys(strike.fault for strike in damage.strikes))
    files = "" if damage.files == FILES else f" ({damage.files} {'file' if damage.files == 1 else 'files'})"
    return (faults or "no fault") + files


_ONLY_WITH_WORKERS = "with workers only: the fault hits the reading process"


def _settings(scenario: Scenario) -> str:
    settings = [f"{name}={value}" for name, value in scenario.settings.items() if name != "phases"]
    if "phases" in scenario.settings:
        settings.append(in_words(scenario.phases))
    return ", ".join([*settings, "with a timeout"] if scenario.timed else settings)


def _scenario(scenario: Scenario) -> Article:
    spec = example(scenario)
    exercised = [check.id for check in checks.registry().values() if check.exercised(spec)]
    plan = "none"
    if scenario.fault is not None:
        plan = f"{scenario.fault!r} on {spans(spec.plan)} of {spec.samples} samples, with batches of {spec.batch_size}"
    parts = [
        ("fault", plan),
        ("settings", _settings(scenario)),
        ("where", _ONLY_WITH_WORKERS if scenario.needs_workers else ""),
        ("tries", ", ".join(exercised)),
    ]
    return _article("scenario", scenario.name, scenario.why, parts)


def _fault(kind: str, cls: type[faults.Fault]) -> Article:
    title, _, rest = (inspect.getdoc(cls) or "").partition("\n")
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    parameters = ", ".join(f"{field.name}={_default(field)}" for field in fields)
    used = ", ".join(
        [scenario.name for scenario in PLAIN if isinstance(scenario.fault, cls)]
        + [scenario.name for scenario in ON_DISK if any(kind in _faults_of(damage) for damage in scenario.on.values())]
    )
    parts = [
        ("more", " ".join(rest.split())),
        ("effect", _EFFECTS[cls.effect]),
        (
            "on disk",
            f"one {cls.level}, of {', '.join(cls.kinds)}; family {cls.family}" if issubclass(cls, DiskFault) else "",
        ),
        ("parameters", parameters),
        ("import", "" if issubclass(cls, DiskFault) else f"from badbatch.harness.faults import {cls.__name__}"),
        ("used in", used),
    ]
    return _article("fault", kind, title, parts)


def _faults_of(damage: Damage) -> set[str]:
    return {strike.fault for strike in damage.strikes}


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return repr(field.default_factory()) if field.default_factory is not dataclasses.MISSING else "…"


_EFFECTS: Mapping[faults.Effect, str] = {
    faults.Effect.ERROR: "the read raises: the sample is damaged",
    faults.Effect.VALUE: "the read returns something that is not a good sample: it is damaged",
    faults.Effect.UNPICKLABLE: "the read returns a good sample that cannot leave its process",
    faults.Effect.LEGAL: "the sample is odd but good: it must arrive",
    faults.Effect.STALL: "the read does not return: the sample is damaged",
    faults.Effect.SLOW: "the read returns the good sample, late",
    faults.Effect.CRASH: "the reading process dies: the sample is damaged",
    faults.Effect.TRANSIENT: "the read fails at first, and succeeds when tried again",
}


def _diagnosis(entry: Entry) -> Article:
    return _article("diagnosis", entry.id, entry.cause, [("fix", entry.fix)])


def _format(name: str) -> Article:
    """A report format, with the options that switch it on."""
    of_a_run, of_a_comparison = report_formats().get(name), comparison_formats().get(name)
    parts = []
    if of_a_run is not None:
        commands = ("run",) if of_a_run.complete else ("run", "replay", "judge")
        parts.append(("command", ", ".join(f"badbatch {command} --{name} FILE" for command in commands)))
        parts.append(("pytest", f"--loader-{name} FILE" if of_a_run.in_pytest else ""))
    if of_a_comparison is not None:
        parts.append(("comparison", f"badbatch compare --{name} FILE"))
    found = of_a_run or of_a_comparison
    assert found is not None
    return _article("format", name, found.title, [*parts, ("ending", found.suffix)])


def _term(kind: str, term: glossary.Term) -> Article:
    return _article(kind, term.name, term.meaning, [("also", ", ".join(term.also)), ("see", ", ".join(term.see))])


def _article(kind: str, name: str, title: str, parts: list[tuple[str, str]]) -> Article:
    return Article(kind, name, title, tuple((label, text) for label, text in parts if text))


def example(scenario: Scenario) -> TrialSpec:
    """The scenario's trial with two workers and two ranks, as the suite would run it by default."""
    batch_size = scenario.settings.get("batch_size", _DEFAULTS.batch_size)
    samples = scenario.samples(_DEFAULTS.samples, batch_size)
    return TrialSpec(
        loader="",
        directory="",
        scenario=scenario.name,
        source=DEFAULT,
        topology=_EXAMPLE,
        plan=scenario.plan(samples, batch_size),
        contract=Contract(),
        samples=samples,
        timeout_s=_DEFAULTS.timeout if scenario.timed else 0.0,
        **{"batch_size": batch_size, **scenario.settings},
    )


_STATES = {faults.Effect.LEGAL: "odd", faults.Effect.SLOW: "slow", faults.Effect.STALL: "hangs"}


def example_on_disk(scenario: DiskScenario) -> TrialSpec:
    """The scenario's trial on the first kind of corpus that it supports, with its faults on the first samples."""
    kind, damage = next(iter(scenario.on.items()))
    struck = [disk_faults(kind)[strike.fault](**strike.parameters) for strike in damage.strikes]
    states = tuple((sample, _STATES.get(fault.effect, "damaged")) for sample, fault in enumerate(struck))
    found = example(scenario)
    stored = Stored("{}", states, files=(("file", 0, found.samples),))
    return dataclasses.replace(found, source=kind, plan=FaultPlan(dict(enumerate(struck))), stored=stored)


disk_faults()  # registers them, so that they are listed with those in memory

_OF_EACH: dict[str, dict[str, Callable[[], Article]]] = {
    "checks": {name: partial(_check, check) for name, check in checks.registry().items()},
    "scenarios": {name: partial(_scenario_of, name) for name in names()},
    "faults": {kind: partial(_fault, kind, cls) for kind, cls in faults.registry().items()},
    "sources": {term.name: partial(_term, "source", term) for term in glossary.SOURCES},
    "formats": {name: partial(_format, name) for name in sorted({*report_formats(), *comparison_formats()})},
    "words": {term.name: partial(_term, "word", term) for term in glossary.WORDS},
    "diagnoses": {name: partial(_diagnosis, entry) for name, entry in diagnoses.registry().items()},
}
_ARTICLES = {kind: _OF_EACH[kind] for kind in KINDS}
_ALSO = {other: term.name for term in glossary.WORDS for other in term.also}

OVERVIEW = """\
badbatch feeds a data loader damaged data and misbehaving storage, records what really happened, and says which promises
the loader broke. The number of workers and ranks must never change which samples arrive.

A scenario is a named fault and its setting; run under one topology (workers × ranks) it is a trial. A check is one promise,
judged on the record of a trial. A diagnosis is the likely cause of a failure. The verdict of a check on a trial is
fail, inconclusive (the trial cannot show it), pass, n/a (the contract lacks what the check needs) or known (declared by the
loader's owner to fail)."""
