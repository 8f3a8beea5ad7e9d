"""A decorator for pytest: every check of every trial as a case of the user's own test function."""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ...harness.contract.calling import describe, resolve
from ...harness.contract.source_names import DEFAULT
from ...harness.sources.base import promised
from ...harness.trial.spec import TrialSpec
from ..engine.api import name_of
from ..engine.suite import Suite
from ..judging.verdict import Mark
from ..options import FAILURES, Options
from .items import settle

F = TypeVar("F", bound=Callable[..., Any])


class LoaderCheck:
    """One check on one trial, as :func:`parametrize_with_checks` gives it to a test; call it to run the check."""

    def __init__(self, shared: _SharedSuite, spec: TrialSpec, check: str) -> None:
        self._shared = shared
        self._spec = spec
        self.check = check

    def __repr__(self) -> str:
        return f"{self._spec.id}::{self.check}"

    def __call__(self) -> None:
        """Run the trial, unless that was done already, and judge.

        Raises:
            BrokenPromise: the loader broke the promise. Skips if the check is n/a; fails if it is inconclusive.
        """
        _, verdicts = self._shared.suite().judged(self._spec)
        verdict = next(verdict for verdict in verdicts if verdict.check == self.check)
        if verdict.mark is Mark.INCONCLUSIVE:  # a skip would be green here, but a doubtful trial proves nothing
            pytest.fail(f"inconclusive: {verdict.reason}", pytrace=False)
        settle(verdict)


class _SharedSuite:
    """Laid out when tests are collected; started when the first check is called; closed when the interpreter ends."""

    def __init__(self, loader: Any, options: Options, directory: str) -> None:
        self._suite = Suite(name_of(loader), options, directory, failures=FAILURES)
        self._started = False
        atexit.register(self._suite.close)

    def lay_out(self, loader: Any) -> Suite:
        """The suite, with its trials known but nothing running."""
        target = resolve(loader) if isinstance(loader, str) else describe(self._suite.loader, loader)
        self._suite.lay_out(target.contract("").sources or (DEFAULT,), functools.partial(promised, target))
        return self._suite

    def suite(self) -> Suite:
        """The suite, running."""
        if not self._started:
            self._started = True
            self._suite.start()
            self._suite.prepare()
        return self._suite


def parametrize_with_checks(loader: Any, **options: Any) -> Callable[[F], F]:
    """Parametrize a test function with every check on every trial of a loader.

    ::

        @parametrize_with_checks(make_loader, workers=(0, 2))
        def test_my_loader(check):
            check()

    Args:
        loader: a factory or class at the top level of a module, or its name ``pkg.module:attr``.
        options: fields of :class:`~badbatch.conformance.options.Options`.

    Raises:
        UserError: the loader cannot be imported by a name, or an option is wrong.
    """
    module = sys.modules.get(getattr(loader, "__module__", ""), None)
    file = getattr(module, "__file__", None)
    top = getattr(loader, "__module__", "").count(".") + 1
    directory = str(Path(file).resolve().parents[top - 1]) if file and not isinstance(loader, str) else "."
    shared = _SharedSuite(loader, Options(**options), directory)
    suite = shared.lay_out(loader)
    cases = [
        pytest.param(LoaderCheck(shared, spec, name), id=f"{spec.id}-{name}")
        for spec in suite.specs()
        for name in suite.checks_for(spec)
    ]

    def decorate(function: F) -> F:
        decorated: F = pytest.mark.parametrize("check", cases)(function)
        return decorated

    return decorate
