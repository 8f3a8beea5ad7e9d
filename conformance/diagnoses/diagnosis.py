"""The likely cause of a failure, named from the pattern of its history."""

from __future__ import annotations

from ...harness.trial.history import History
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from ..judging.verdict import Diagnosis
from .base import registry
from .case import Case


def diagnose(check: str, history: History, ledger: Ledger, expected: Expectation) -> Diagnosis | None:
    """The first diagnosis that fits a failing trial; None if none fits."""
    case = Case(check, history, ledger, expected)
    for entry in registry().values():
        if check in entry.explains and (clause := entry.rule(case)):
            return Diagnosis(entry.id, f"{clause}. {entry.fix}")
    return None
