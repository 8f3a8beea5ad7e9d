"""From the runs of a trial to its result: each run is judged, the policy says what follows, relations wait for other trials."""

from __future__ import annotations

import dataclasses
import functools
import shutil

from ...harness.errors import one_line
from ..judging.verdict import Mark, Verdict
from ..report.result import TrialResult
from . import context
from .artifacts import Artifacts, keep_pictures
from .exchange import Exchange
from .judge import judge
from .policy import Next, Policy, replaces_record
from .questions import Questions
from .relating import consequences
from .relations import Relations, release
from .runs import Runs
from .single import again, trial_result
from .tasks import Done
from .trial_state import TrialState, merge
from .trials import Trials


class Outcomes:
    """Gives each trial its result."""

    def __init__(
        self,
        trials: Trials,
        questions: Questions,
        policy: Policy,
        relations: Relations,
        artifacts: Artifacts,
        runs: Runs,
        exchange: Exchange,
    ) -> None:
        self._trials = trials
        self._questions = questions
        self._policy = policy
        self._relations = relations
        self._artifacts = artifacts
        self._runs = runs
        self._exchange = exchange

    def take(self, state: TrialState, done: Done) -> None:
        """Judge a run that has ended.

        If that raises, the trial is inconclusive, since nothing else will produce its result.
        """
        try:
            self._take(state, done)
        except BaseException as error:  # an interrupt, or an error in badbatch
            self.cut(state, f"judging it was ended by {one_line(error)}")
            raise

    def _take(self, state: TrialState, done: Done) -> None:
        if state.reruns_for is not None:
            state.records, state.over = [done.folder], True
            self.settle(state.reruns_for.subject)
            return
        for waiting in self._policy.seen(done.history):
            self._runs.submit(waiting, waiting.wanted)
        spec = done.history.spec
        kept = self._artifacts.name(spec) if not state.needed_by or not state.hidden else None
        replay = again(kept) if kept is not None else ""
        verdicts = judge(done.history, clean=self._policy.spoiled(spec), replay=replay)
        failed = any(v.mark is Mark.FAIL and v.check in self._questions.checks for v in verdicts)
        alone = done.task.alone
        what = self._policy.after(state, done.history, verdicts, failed=failed, alone=alone)
        if what is Next.ALONE:
            self._runs.submit(state, alone=True)
            shutil.rmtree(done.folder, ignore_errors=True)
            return
        if failed:
            keep_pictures(done.history, verdicts)
        if replaces_record(state, failed=failed):
            state.folder = self._artifacts.keep(done.folder, kept, failed, state.keeps, remove=False) or state.folder
            if state.folder is not None and state.keeps:
                seen = context.Context(clean=self._policy.spoiled(spec))
                self._artifacts.add(functools.partial(context.write, state.folder, seen))
        if state.compared:
            state.records.append(done.folder)
        else:
            shutil.rmtree(done.folder, ignore_errors=True)
        if what is Next.AGAIN:
            self._runs.submit(state, alone=alone, first=True)
        elif what is Next.RESULT:
            self._over(state)

    def _over(self, state: TrialState) -> None:
        """A trial has run as often as it should: it has its result, unless relations that are asked of it wait for others."""
        state.own = self._merged(state)
        state.runs.clear()
        state.over = True
        self._exchange.share(state)
        self.settle(state)
        self._settle_others(state)

    def _merged(self, state: TrialState) -> TrialResult:
        history, _ = state.runs[0]
        merged = merge([verdicts for _, verdicts in state.runs])
        merged = [verdict for verdict in merged if verdict.check in self._questions.checks]
        if state.folder is None:  # there is nothing left that could be run again
            merged = [dataclasses.replace(verdict, replay="") for verdict in merged]
        return dataclasses.replace(trial_result(history, merged, state.folder), spec=state.spec)

    def settle(self, state: TrialState) -> None:
        """Give a trial its result, once all relations that are asked of it have their verdict."""
        if state.own is None or state.result is not None or state.elsewhere:
            return
        try:
            verdicts = self._relations.verdicts(state, self._runs.submit)
        except BaseException as error:  # nothing else will bring its result
            self.cut(state, f"comparing it was ended by {one_line(error)}")
            raise
        if verdicts is not None:
            self._finish(state, verdicts)

    def _settle_others(self, state: TrialState) -> None:
        waiting = state.needed_by if state.reruns_for is None else [state.reruns_for]
        for asked in waiting:
            self.settle(asked.subject)
        release(state)

    def _finish(self, state: TrialState, related: list[Verdict]) -> None:
        assert state.own is not None
        verdicts = sorted((*state.own.verdicts, *related), key=lambda verdict: verdict.check)
        state.result = dataclasses.replace(state.own, verdicts=tuple(consequences(verdicts, related)))
        if not state.hidden:
            self._exchange.tell(state)
            self._connect(state)

    def _connect(self, state: TrialState) -> None:
        """Store in a kept folder what the diagnosis of its trial was compared with, for when it is judged alone."""
        for other in self._trials:
            if state.result is None or not context.belong_together(state.spec, other.spec):
                continue
            result = other.result or self._exchange.result(other)
            if result is not None:
                self._artifacts.add(functools.partial(context.connect, state.result, result))

    def cut(self, state: TrialState, why: str) -> None:
        """End a trial that has no result yet, or do not start it: its result is inconclusive."""
        if state.result is not None or state.absent is not None:
            return
        if state.own is not None:  # only its relations still wait
            self._finish(state, self._relations.give_up(state, why))
            return
        self._runs.drop(state)
        how = "not run to its end" if state.started or state.elsewhere else "not run"
        state.absent = Mark.INCONCLUSIVE, f"{how}: {why}"
        if not state.hidden:
            state.result = self._trials.without(state, "cut" if state.started else "not run")
            self._exchange.tell(state)
            self._connect(state)
        for waiting in self._policy.unseen(state.spec, why):
            self._runs.submit(waiting, waiting.wanted)
        self._settle_others(state)

    def look_elsewhere(self, state: TrialState) -> None:
        """Take what other processes have left: the result of a trial that one of them runs, and the records that relations need."""
        if self._exchange.alone:
            return
        waiting = [one for one in self._trials if one.own is not None and one.result is None]
        for abandoned in (*self._exchange.fetch(state), *self._exchange.borrow(waiting)):
            self._runs.submit(abandoned, abandoned.wanted)
        for one in waiting:
            self.settle(one)
