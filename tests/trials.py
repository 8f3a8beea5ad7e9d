"""Runs many trials of many loaders at once, in one zygote, and judges them: for tests of the fixtures."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import importlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from badbatch.conformance import checks, scenarios
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.preparations import Preparations
from badbatch.conformance.engine.questions import stays_away
from badbatch.conformance.engine.relating import consequences, explained, record, relate
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.harness.contract.job import Contract, declared
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec

ROOT = Path(__file__).parents[1]
_PLAIN = Topology()
_AT_ONCE = 6  # most of them wait most of the time
_MOST_SUPERVISORS = 3


@dataclasses.dataclass(frozen=True)
class Judged:
    """One trial, as it was recorded and judged."""

    history: History
    verdicts: tuple[Verdict, ...]

    @property
    def blamed(self) -> dict[str, Verdict]:
        """The failures without a cause among the others, by check: consequences are grouped under their cause."""
        return {v.check: v for v in self.verdicts if v.mark is Mark.FAIL and not v.cause}

    @property
    def unexplained(self) -> list[str]:
        """What is neither kept, nor out of question, nor explained by another failure; one line each."""
        return [
            f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}"
            for v in self.verdicts
            if v.mark not in (Mark.PASS, Mark.NA) and not v.cause
        ]


def roles(spec: TrialSpec) -> dict[str, dict[str, TrialSpec]]:
    """From each relation that is asked of a trial to its trials by role."""
    found = {name: relation.trials(spec) for name, relation in checks.relations().items()}
    return {name: specs for name, specs in found.items() if specs}


def related(judged: Mapping[TrialSpec, Judged], spec: TrialSpec) -> Judged:
    """A trial with the verdicts of the relations whose trials were run; a check that fails in one of them explains a failure.

    A failure that another number of workers alone explains stands for itself, as in a report that does not show that trial.
    """
    trial = judged[spec]
    found = []
    for name, specs in roles(spec).items():
        relation = checks.relations()[name]
        ran = compared(judged, spec, name)
        if not all(role.optional or role.name in ran for role in relation.roles):
            continue
        shown = [role.name for role in relation.roles if not role.optional]
        own = {specs[role].id: judged[specs[role]].verdicts for role in shown}
        found.append(explained(relation, relate(relation, ran), own))
    return dataclasses.replace(trial, verdicts=tuple(consequences((*trial.verdicts, *found), found)))


def compared(judged: Mapping[TrialSpec, Judged], spec: TrialSpec, name: str) -> dict[str, checks.Recorded]:
    """The trials of a relation that were run, by role."""
    return {role: record(judged[other].history) for role, other in roles(spec)[name].items() if other in judged}


@functools.cache
def promise(loader: str) -> Contract:
    """What a test's factory declares."""
    module, _, name = loader.partition(":")
    return declared(getattr(importlib.import_module(module), name))


@functools.cache
def _corpora() -> Preparations:
    """The corpora that questions are about, in a folder that is removed when the tests have ended."""
    folder = tempfile.mkdtemp(prefix="badbatch-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Preparations(Path(folder))


def question(
    loader: str,
    scenario: str,
    topology: Topology = _PLAIN,
    source: str = "map",
    *,
    timeout_s: float = 1.0,
    deadline_s: float = 30.0,
) -> TrialSpec:
    """The trial that the suite puts to a loader by default: 40 samples, batches of 4."""
    chosen = scenarios.find(scenario, source)
    settings = {"batch_size": 4, **chosen.settings}
    settings["phases"] = chosen.phases_in(topology, chosen.samples(40, settings["batch_size"]), settings["batch_size"])
    settings |= _corpora().settings(chosen, source, 40, settings["batch_size"], seed=0)
    settings["lockstep"] = settings.get("lockstep", False) and topology.ranks > 1
    return TrialSpec(
        loader=loader,
        directory=str(ROOT),
        scenario=scenario,
        source=source,
        topology=topology,
        contract=promise(loader),
        timeout_s=timeout_s if chosen.timed else 0.0,
        deadline_s=deadline_s,
        **settings,
    )


def questions(loader: str, names: Iterable[str], topologies: Iterable[Topology]) -> list[TrialSpec]:
    """The trials of a loader in these scenarios and topologies, over the sources that it declares."""
    contract = promise(loader)
    names, topologies = list(names), list(topologies)
    return [
        question(loader, name, topology, source)
        for source in contract.sources or ("map",)
        for topology in topologies
        for name in names
        if not stays_away(contract, topology, scenarios.find(name, source))
    ]


def put(specs: Iterable[TrialSpec], folder: Path) -> dict[TrialSpec, Judged]:
    """Run and judge trials, several at a time, in the given order."""
    waiting = list(dict.fromkeys(specs))
    count = 0
    found: dict[TrialSpec, Judged] = {}
    running: dict[int, TrialSpec] = {}
    if not waiting:
        return found
    supervisor = _supervisor(waiting[0].loader)
    try:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                count += 1
                spec = waiting.pop(0)
                running[supervisor.start(spec, folder / str(count))] = spec
            for number, where in supervisor.finished(0.5):
                history = History.load(where)
                found[running.pop(number)] = Judged(history, tuple(judge(history)))
    finally:
        if running:  # the next test must not meet these trials
            close()
    return found


_supervisors: dict[str, Supervisor] = {}


def _supervisor(loader: str) -> Supervisor:
    """One supervisor a loader: what it costs most to start is torch."""
    if loader not in _supervisors:
        if len(_supervisors) == _MOST_SUPERVISORS:
            _supervisors.pop(next(iter(_supervisors))).close()
        _supervisors[loader] = Supervisor(loader, ROOT)
    return _supervisors[loader]


def close() -> None:
    """End all supervisors."""
    while _supervisors:
        _supervisors.popitem()[1].close()


atexit.register(close)
