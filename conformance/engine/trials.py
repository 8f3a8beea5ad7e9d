"""The trials of one suite, with what is known about each: which are selected, which are not run, which must run besides."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence

from ...harness.contract.job import Contract
from ...harness.errors import UserError
from ...harness.trial.spec import TrialSpec
from ..judging.doubts import not_struck
from ..judging.verdict import Mark, Verdict
from ..report.result import TrialResult
from ..scenarios import find as find_scenario
from .questions import CLEAN, Questions, stays_away
from .relations import Relations
from .trial_state import TrialState


class Trials:
    """The selected trials of a loader, in the order of the report."""

    def __init__(self, questions: Questions, relations: Relations) -> None:
        self._questions = questions
        self._relations = relations
        self._states: dict[str, TrialState] = {}
        self._wanted: frozenset[str] | None = None
        self.contracts: dict[str, Contract] = {}
        """The contract of each source that the loader is offered."""

    def __iter__(self) -> Iterator[TrialState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, spec: TrialSpec) -> TrialState:
        return self._states[spec.id]

    def lay_out(self, sources: Sequence[str], contract: Callable[[str], Contract]) -> None:
        """Select the trials for a loader with these sources and declared contracts.

        Raises:
            UserError: an option is wrong, or the suite offers none of the sources.
        """
        self._questions.must_be_valid()
        self.contracts = {source: contract(source) for source in self._questions.sources(sources)}
        for spec, scenario in self._questions.trials(self.contracts):
            state = self._states[spec.id] = TrialState(spec, scenario, wanted=self._questions.options.repeat)
            if reason := stays_away(spec.contract, spec.topology, scenario) or not_struck(spec):
                state.absent = Mark.NA, reason
        if not self._states:
            offered = ", ".join(self.contracts)
            raise UserError(f"no selected scenario applies to {offered}: badbatch list scenarios shows them all")
        self._relations.lay_out(self._states)
        self._settle_absent()

    def complete(self, contract: Callable[[str, Contract], Contract]) -> None:
        """Replace each contract by a complete one, from the source and the declared contract."""
        for source, declared in self.contracts.items():
            self.contracts[source] = contract(source, declared)
        for state in (*self._states.values(), *self._relations.added.values()):
            spec = state.spec = dataclasses.replace(state.spec, contract=self.contracts[state.spec.source])
            if state.absent is None and (reason := stays_away(spec.contract, spec.topology, state.scenario)):
                state.absent = Mark.NA, reason  # by what was inferred
        self._settle_absent()

    def _settle_absent(self) -> None:
        for state in self:
            if state.absent is not None and state.result is None:
                state.result = self.without(state, "not run")
            elif state.result is not None:
                state.result = dataclasses.replace(state.result, spec=state.spec)

    def without(self, state: TrialState, ended: str) -> TrialResult:
        """The result of a trial that has no history; ``state.absent`` says why."""
        assert state.absent is not None
        mark, reason = state.absent
        spec = state.spec
        verdicts = tuple(
            Verdict(spec.loader, spec.scenario, spec.source, spec.topology, name, mark, reason=reason)
            for name in self.checks_for(spec)
        )
        return TrialResult(spec, verdicts, 0.0, ended, 0, 0, 0, 0)

    def only(self, wanted: Collection[tuple[str, str]]) -> None:
        """Run no other trials than these, and judge no other relations.

        Args:
            wanted: (id of the trial, id of the check or relation).
        """
        self._wanted = frozenset(name for name, _ in wanted)
        self._relations.only(self._states, wanted)

    def to_run(self) -> list[TrialState]:
        """The wanted trials, those that their relations need, and the clean trial of each of their cells."""
        wanted = [
            state for name, state in self._states.items() if state.result is None and (self._wanted is None or name in self._wanted)
        ]
        wanted += self._relations.needed(wanted)
        names = {state.spec.id for state in wanted}
        for source, topology in dict.fromkeys((state.spec.source, state.spec.topology) for state in wanted):
            spec = self._questions.named(CLEAN, source, topology, self.contracts[source])
            if spec.id not in names:
                wanted.append(TrialState(spec, find_scenario(CLEAN, source), hidden=True))
        return wanted

    def checks_for(self, spec: TrialSpec) -> list[str]:
        """The ids of the selected checks that a trial exercises, and of the relations that are asked of it."""
        state = self._states.get(spec.id)
        related = [] if state is None else [asked.relation.id for asked in state.asked]
        return sorted((*self._questions.checks_for(spec), *related))
