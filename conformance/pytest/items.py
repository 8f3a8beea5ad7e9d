"""The suite as pytest items: one for each check of each trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...harness.trial.spec import TrialSpec
from ..engine.suite import Suite
from ..judging.verdict import Mark, Verdict
from ..report.result import TrialResult
from ..report.terminal import render_failure


class BrokenPromise(AssertionError):
    """A violation, shown in five parts."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(render_failure(verdict))
        self.verdict = verdict


class Backstop(BaseException):
    """pytest-timeout's timer fired: badbatch makes no progress.

    Not an Exception, so that no handler on the way catches it.
    """

    def __init__(self, stacks: list[str]) -> None:
        super().__init__("no progress")
        self.stacks = stacks


def settle(verdict: Verdict) -> None:
    """Turn a verdict into pytest's outcome: return, raise, skip or xfail.

    Raises:
        BrokenPromise: the loader broke the promise.
    """
    if verdict.mark is Mark.FAIL:
        raise BrokenPromise(verdict)
    if verdict.mark is Mark.NA:
        pytest.skip(verdict.reason)
    if verdict.mark is Mark.KNOWN:
        pytest.xfail(verdict.reason)
    if verdict.mark is Mark.INCONCLUSIVE:
        pytest.skip(f"inconclusive: {verdict.reason}")


class Group(pytest.Collector):
    """A node of the tree that ``--collect-only`` shows; it never collects."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        return []


class TrialCheck(pytest.Item):
    """One check on one trial."""

    def __init__(self, *, suite: Suite, spec: TrialSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._suite = suite
        self.loader = suite.loader
        self.spec = spec
        self.result: TrialResult | None = None
        self.verdict: Verdict | None = None
        self.limit_s: float | None = None
        """The user's own timeout for this item, in seconds; None: the trial's deadline is enough."""
        self.on_progress: Callable[[], None] | None = None
        """Called whenever a trial has ended."""
        self.cancel_timeout: Callable[[], None] | None = None
        """The function that pytest-timeout calls to cancel its timer."""
        self.stacks: list[str] = []

    def runtest(self) -> None:
        """Wait for the trial, and report the check's verdict."""
        try:
            self.result, verdicts = self._suite.judged(self.spec, self.limit_s, self._progress)
        except Backstop as fired:
            self.stacks = fired.stacks
            self._suite.give_up("badbatch made no progress and gave up: the report's notes have the stacks of its threads")
            self.result, verdicts = self._suite.judged(self.spec)
        self.verdict = next(verdict for verdict in verdicts if verdict.check == self.name)
        verdict = self.verdict
        self.user_properties += [
            ("scenario", verdict.scenario),
            ("topology", str(verdict.topology)),
            ("source", verdict.source),
            ("check", verdict.check),
            ("verdict", verdict.mark.value),
            ("replay", verdict.replay),
            *([("trials", verdict.compared)] if verdict.trials else []),
        ]
        settle(verdict)

    def _progress(self) -> None:
        if self.on_progress is not None:
            self.on_progress()

    def told(self, sent: set[str]) -> dict[str, Any]:
        """What the report of this item sends to the process that prints: plain data, since xdist transfers it."""
        assert self.verdict is not None
        assert self.result is not None
        data: dict[str, Any] = {
            "loader": self._suite.loader,
            "verdict": self.verdict.to_json(),
            "trial": self.result.to_json(),
        }
        if self._suite.loader not in sent:
            sent.add(self._suite.loader)
            data["header"] = self._suite.header()
        data["notes"] = [self._suite.trouble] if self._suite.trouble else []
        if self.stacks:
            data["notes"] += [f"no trial ended for very long while pytest waited for {self.nodeid}; the stacks:", *self.stacks]
        return data

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The five parts, without a traceback: it would show badbatch's code, not the user's."""
        if isinstance(excinfo.value, BrokenPromise):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the item is: nowhere in a file."""
        return self.config.invocation_params.dir, None, self.nodeid
