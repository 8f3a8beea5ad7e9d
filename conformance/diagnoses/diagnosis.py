"""The likely cause of a failure, named from the pattern of its history."""

from __future__ import annotations

from collections.abc import Mapping

from ...harness.trial.history import History
from ..checks.base import Recorded
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from ..judging.verdict import Diagnosis
from .base import registry
from .case import Case
from .comparison import Comparison


def diagnose(check: str, history: History, ledger: Ledger, expected: Expectation) -> Diagnosis | None:
    """The first diagnosis that fits a failing trial; None if none fits."""
    return _first_that_fits(check, Case(check, history, ledger, expected))


def diagnose_relation(relation: str, trials: Mapping[str, Recorded]) -> Diagnosis | None:
    """The first diagnosis that fits a failing relation; None if none fits.

    Args:
        trials: by role, the one that is asked about first.
    """
    return _first_that_fits(relation, Comparison(trials))


def _first_that_fits(promise: str, case: Case | Comparison) -> Diagnosis | None:
    for entry in registry().values():
        if promise in entry.explains and (clause := entry.rule(case)):
            return Diagnosis(entry.id, f"{clause}. {entry.fix}")
    return None
