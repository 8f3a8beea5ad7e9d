"""The relations of a suite: of which trials they are asked, which trials they need besides, and what comes of them."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ...harness.errors import UserError
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from .. import checks, known, scenarios
from ..judging.doubts import not_struck
from ..judging.verdict import Mark, Verdict
from ..scenarios import quick
from .artifacts import Artifacts
from .policy import Policy
from .questions import Questions, stays_away
from .relating import explained, record, relate, standing_alone, without
from .single import again
from .trial_state import Asked, TrialState, merge


class Submit(Protocol):
    """Queues runs of a trial."""

    def __call__(self, state: TrialState, times: int = 1, *, alone: bool = False, first: bool = False) -> None: ...


class Relations:
    """Lays the selected relations out over the trials of a suite, and judges each when all of its trials have run.

    Args:
        confirm: how often a failing relation is judged at least, each time on new runs of its trials.
        entries: of the known files.
    """

    def __init__(
        self, questions: Questions, policy: Policy, artifacts: Artifacts, entries: Sequence[known.Known], confirm: int
    ) -> None:
        self._questions = questions
        self._policy = policy
        self._artifacts = artifacts
        self._known = entries
        self._confirm = confirm
        self.added: dict[str, TrialState] = {}
        """The trials that no option selects, and that a relation needs, by id."""

    def lay_out(self, states: Mapping[str, TrialState]) -> None:
        """Ask the selected relations of the selected trials."""
        self.added.clear()
        chosen = [one for name, one in checks.relations().items() if name in self._questions.checks]
        for state in states.values():
            for relation in chosen:
                trials = relation.trials(state.spec)
                if trials and (reason := relation.needs(state.spec.contract, state.spec)):
                    asked = Asked(relation, {relation.subject: state})
                    asked.verdict = without(relation, state.spec, {}, Mark.NA, reason)  # without a trial that only it needs
                    state.asked.append(asked)
                    continue
                lacking = [spec for spec in trials.values() if spec.id not in states]
                if not trials or (lacking and not self._may_add(state.spec)):
                    continue
                roles = {role: states.get(spec.id) or self._added(spec) for role, spec in trials.items()}
                asked = Asked(relation, roles)
                state.asked.append(asked)
                for other in list(roles.values())[1:]:
                    other.needed_by.append(asked)

    def _may_add(self, spec: TrialSpec) -> bool:
        return not self._questions.options.quick or spec.scenario in quick.RELATED

    def _added(self, spec: TrialSpec) -> TrialState:
        if spec.id not in self.added:
            scenario = scenarios.find(spec.scenario, spec.source)
            state = TrialState(spec, scenario, wanted=self._questions.options.repeat, hidden=True)
            if reason := stays_away(spec.contract, spec.topology, scenario) or not_struck(spec):
                state.absent = Mark.NA, reason
            self.added[spec.id] = state
        return self.added[spec.id]

    def only(self, states: Mapping[str, TrialState], wanted: Collection[tuple[str, str]]) -> None:
        """Leave out the relations of which no verdict is wanted.

        Args:
            wanted: (id of the trial, id of the check).
        """
        for name, state in states.items():
            for asked in state.asked:
                asked.wanted = (name, asked.relation.id) in wanted

    def needed(self, selected: Sequence[TrialState]) -> list[TrialState]:
        """The trials that these need besides, as their relations compare them with others."""
        found = {id(state): state for state in selected}
        for state in selected:
            for asked in state.asked:
                if asked.wanted:
                    found.update((id(other), other) for other in asked.roles.values() if other.absent is None)
        return list(found.values())[len(selected) :]

    def verdicts(self, state: TrialState, submit: Submit) -> list[Verdict] | None:
        """The verdicts of all relations that are asked of a trial; None: some wait for other trials, or for repetitions."""
        wanted = [asked for asked in state.asked if asked.wanted]
        for asked in wanted:
            if asked.verdict is None:
                self._look(asked, submit)
        if any(asked.verdict is None for asked in wanted):
            return None
        for asked in wanted:
            for other in asked.roles.values():
                release(other)
        return [asked.verdict for asked in wanted if asked.verdict is not None]

    def give_up(self, state: TrialState, why: str) -> list[Verdict]:
        """The same, where those that still wait wait no longer."""
        for asked in state.asked:
            if asked.wanted and asked.verdict is None:
                asked.verdict = without(
                    asked.relation, state.spec, asked.ids, Mark.INCONCLUSIVE, f"not every trial was run to its end: {why}"
                )
        return [asked.verdict for asked in state.asked if asked.wanted and asked.verdict is not None]

    def _look(self, asked: Asked, submit: Submit) -> None:
        """Judge a relation, or have its trials run again, if all that it waits for is there."""
        for other in asked.roles.values():
            if other.absent is not None:
                mark, why = other.absent
                reason = why if other is asked.subject else f"{other.spec.id}: {why}"
                asked.verdict = without(asked.relation, asked.subject.spec, asked.ids, mark, reason)
                return
        if not all(other.over for other in asked.roles.values()):
            return
        if not asked.found:
            for number in range(min(len(other.records) for other in asked.roles.values())):
                asked.found.append(self._judge(asked, {role: s.records[number] for role, s in asked.roles.items()}))
            verdict = self._explained(asked, merge([[verdict] for verdict in asked.found])[0])
            if verdict.mark is Mark.FAIL and not verdict.cause and len(asked.found) < self._confirm:
                self._run_again(asked, submit)
                return
        elif not all(run.over or run.absent for run in asked.reruns.values()):
            return
        elif all(run.records for run in asked.reruns.values()):
            asked.found.append(self._judge(asked, {role: run.records[0] for role, run in asked.reruns.items()}))
        self._decide(asked)

    def _decide(self, asked: Asked) -> None:
        if not asked.found:
            reason = "its trials could not be run again with nothing beside them"
            asked.verdict = without(asked.relation, asked.subject.spec, asked.ids, Mark.INCONCLUSIVE, reason)
            return
        verdict = self._explained(asked, merge([[verdict] for verdict in asked.found])[0])
        if verdict.mark is Mark.FAIL:
            verdict = self._kept(asked, verdict)
        asked.verdict = verdict
        for run in asked.reruns.values():
            release(run)

    def _run_again(self, asked: Asked, submit: Submit) -> None:
        hurries = any(other.hurries for other in asked.roles.values())
        if hurries:  # others beside them may have taken the time: this failure does not count
            asked.found.clear()
        for role, other in asked.roles.items():
            run = TrialState(other.spec, other.scenario, hidden=True, claimed=True, reruns_for=asked)
            asked.reruns[role] = run
            submit(run, alone=hurries, first=True)

    def _judge(self, asked: Asked, records: Mapping[str, Path]) -> Verdict:
        try:
            trials = {role: record(History.load(folder)) for role, folder in records.items()}
        except (UserError, OSError) as error:
            return without(asked.relation, asked.subject.spec, asked.ids, Mark.INCONCLUSIVE, f"a record is gone: {error}")
        clean = {role: self._policy.spoiled(trial.spec) for role, trial in trials.items()}
        verdict = relate(asked.relation, trials, clean=clean)
        if verdict.mark is Mark.FAIL:
            asked.records = dict(records)
        return dataclasses.replace(verdict, trials=tuple(asked.ids.items()))

    def _explained(self, asked: Asked, verdict: Verdict) -> Verdict:
        """The verdict under the check that explains it, where one failed in a trial of the report or is known to fail."""
        own = {other.spec.id: other.own.verdicts for other in asked.roles.values() if other.own is not None}
        found = explained(asked.relation, verdict, own)
        hidden = next((other for other in asked.roles.values() if other.hidden and other.spec.id == found.cause_in), None)
        if hidden is None or hidden.own is None:
            return found
        marked, _ = known.apply([*hidden.own.verdicts, found], self._known)
        if marked[-1].mark is Mark.KNOWN:
            return dataclasses.replace(marked[-1], cause="", cause_in="")
        return standing_alone(found)

    def _kept(self, asked: Asked, verdict: Verdict) -> Verdict:
        name = self._artifacts.name(asked.subject.spec, asked.relation.id)
        folder = self._artifacts.keep_relation(name, asked.relation.id, asked.records, asked.subject.keeps)
        return verdict if folder is None or name is None else dataclasses.replace(verdict, replay=again(name))


def release(state: TrialState) -> None:
    """Remove the records of a trial, once no relation needs them."""
    if state.compared or state.elsewhere:  # those of another process are not ours to remove
        return
    for folder in state.records:
        shutil.rmtree(folder, ignore_errors=True)
    state.records = []
