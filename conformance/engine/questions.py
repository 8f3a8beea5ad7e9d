"""Which trials a loader must run: options, sources and contracts in, trials out. Starts no process."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...harness.contract.job import Contract
from ...harness.contract.source_names import SOURCES
from ...harness.errors import LoaderError
from ...harness.trial.spec import Topology, TrialSpec
from .. import checks, scenarios
from ..options import Options
from ..scenarios import quick
from ..scenarios.base import Scenario
from ..scenarios.topologies import asked, topologies, unsupported
from .preparations import Preparations

CLEAN = "clean"


class Questions:
    """The trials of one loader that the options select.

    Args:
        directory: the folder that is importable, in addition to what is installed.
        preparations: makes what the trials read.
    """

    def __init__(self, loader: str, options: Options, directory: str, preparations: Preparations) -> None:
        self.loader = loader
        self.options = options
        self.directory = directory
        self._preparations = preparations

    @functools.cached_property
    def scenarios(self) -> list[str]:
        """The names of the selected scenarios.

        Raises:
            UserError: a name matches nothing.
        """
        options = self.options
        chosen = dict.fromkeys((*quick.IN_MEMORY, *quick.ON_DISK)) if options.quick else options.scenarios
        return scenarios.select(scenarios.names(), list(chosen), "scenario", options.not_scenarios)

    @functools.cached_property
    def checks(self) -> frozenset[str]:
        """The ids of the selected checks.

        Raises:
            UserError: a name matches nothing.
        """
        chosen = scenarios.select(list(checks.registry()), self.options.checks, "check", self.options.not_checks)
        return frozenset(chosen)

    @functools.cached_property
    def topologies(self) -> list[Topology]:
        """The selected topologies.

        Raises:
            UserError: a start method that does not exist here.
        """
        options = self.options
        if options.quick:
            return quick.topologies(options.workers, options.ranks, options.start_methods)
        return topologies(options.workers, options.ranks, options.start_methods, options.persistent_workers)

    @functools.cached_property
    def offered(self) -> list[str]:
        """The names of the selected sources, whether the loader declares them or not.

        Raises:
            UserError: a name matches nothing.
        """
        return scenarios.select(SOURCES, self.options.sources, "source")

    def must_be_valid(self) -> None:
        """Refuse names that match nothing.

        Raises:
            UserError: in one line.
        """
        _ = self.scenarios, self.checks, self.topologies, self.offered

    def sources(self, declared: Sequence[str]) -> tuple[str, ...]:
        """The declared sources that the suite offers and the options select.

        Raises:
            LoaderError: there is none.
        """
        known = tuple(source for source in declared if source in SOURCES)
        if not known:
            raise LoaderError(f"{self.loader} declares only sources that the suite does not offer: {', '.join(declared)}")
        found = tuple(source for source in known if source in self.offered)
        if not found:
            given = ", ".join(self.options.sources)
            raise LoaderError(
                f"{self.loader} is offered only {', '.join(known)}, and the selected sources ({given}) are none of them; "
                "a factory declares others with @loader(sources=…)"
            )
        return found

    def trials(self, contracts: Mapping[str, Contract]) -> Iterator[tuple[TrialSpec, Scenario]]:
        """All trials, source by source, in the order of the report.

        Args:
            contracts: of each source in use.
        """
        for source, contract in contracts.items():
            for topology in self.topologies:
                for name in scenarios.names(source):
                    if name not in self.scenarios:
                        continue
                    scenario = scenarios.find(name, source)
                    if self.options.quick and not quick.asks(scenario):
                        continue
                    if asked(topology, scenario, contract, self.options.persistent_workers):
                        yield self.trial(scenario, source, topology, contract), scenario

    def named(self, scenario: str, source: str, topology: Topology, contract: Contract) -> TrialSpec:
        """The trial of a scenario by its name, whether it is selected or not."""
        return self.trial(scenarios.find(scenario, source), source, topology, contract)

    def clean(self, spec: TrialSpec) -> TrialSpec:
        """The clean trial in the topology of a trial."""
        return self.named(CLEAN, spec.source, spec.topology, spec.contract)

    def trial(self, scenario: Scenario, source: str, topology: Topology, contract: Contract) -> TrialSpec:
        """One trial."""
        options = self.options
        batch_size = scenario.settings.get("batch_size", options.batch_size)
        settings: dict[str, Any] = {"batch_size": batch_size, **scenario.settings}
        if topology.ranks == 1:
            settings["lockstep"] = False
        if "step_s" in settings:
            settings["step_s"] = settings["step_s"] * options.timeout
        program = scenario.phases_in(topology, scenario.samples(options.samples, batch_size), batch_size)
        settings["phases"] = tuple(phase for phase in program if phase.topology is None or not unsupported(contract, phase.topology))
        settings |= self._preparations.settings(scenario, source, options.samples, batch_size, options.seed)
        return TrialSpec(
            loader=self.loader,
            directory=self.directory,
            scenario=scenario.name,
            source=source,
            topology=topology,
            contract=contract,
            seed=options.seed,
            timeout_s=options.timeout if scenario.timed else 0.0,
            deadline_s=options.deadline,
            **settings,
        )

    def checks_for(self, spec: TrialSpec) -> list[str]:
        """The ids of the selected checks that a trial exercises."""
        return [name for name, check in checks.of_one_trial().items() if name in self.checks and check.exercised(spec)]


def stays_away(contract: Contract, topology: Topology, scenario: Scenario) -> str:
    """Why a trial is not run, so that its cells are n/a; empty: it is run."""
    if reason := unsupported(contract, topology):
        return reason
    if topology.persistent and not contract.persistent_workers:
        return "the loader does not support persistent_workers"
    if reason := _cannot(contract, scenario) or _goes_nowhere(contract, topology, scenario):
        return reason
    return _strikes_itself(contract, topology, scenario)


def _cannot(contract: Contract, scenario: Scenario) -> str:
    """What the scenario asks for and the loader does not promise."""
    if scenario.resumes and contract.resume == "none":
        inferred = "resume" in contract.inferred
        return "the loader has no state_dict() and load_state_dict()" if inferred else 'the loader declares resume="none"'
    if scenario.limits_skips and contract.on_damage != "skip":
        return "the loader has no skips to limit"
    if scenario.limits_skips and not contract.skip_budget:
        return "the loader does not declare skip_budget=True"
    if scenario.timed and not contract.timeout:
        return "the loader declares timeout=False"
    return ""


def _goes_nowhere(contract: Contract, topology: Topology, scenario: Scenario) -> str:
    """Why a scenario that goes on in other topologies cannot go on in any; empty: it can."""
    others = [phase.topology for phase in scenario.phases_in(topology, 1, 1) if phase.topology is not None]
    reasons = [unsupported(contract, other) for other in others]
    return reasons[0] if reasons and all(reasons) else ""


def _strikes_itself(contract: Contract, topology: Topology, scenario: Scenario) -> str:
    """Why the fault would hit the consumer's own process, or nothing could end its wait; empty: another process reads."""
    if topology.workers == 0 and scenario.needs_workers:
        return "without workers the fault hits the consumer's own process, which no loader survives"
    if topology.workers == 0 and scenario.timed:
        return "without workers nothing could time a read out"
    if scenario.needs_workers and contract.readers == "consumer":
        return "the consumer reads the samples: the fault hits its own process, which no loader survives"
    if scenario.strikes_process and contract.readers == "threads":
        return "the loader's readers are threads: the fault hits the consumer's own process, which no loader survives"
    return ""
