"""Which diagnoses fit a failing trial, and whether it is declared which of them is named."""

from __future__ import annotations

from badbatch.conformance import diagnoses
from badbatch.conformance.diagnoses.case import Case
from badbatch.conformance.diagnoses.comparison import Comparison
from badbatch.conformance.judging.accounting import account
from badbatch.conformance.judging.expectation import expect
from badbatch.harness.trial.history import History


def undeclared(check: str, history: History) -> list[str]:
    """The diagnoses that fit a failing check and are tried after the one that is named, without a declaration that says so."""
    expected = expect(history.spec)
    return undeclared_of(check, Case(check, history, account(history, expected), expected))


def undeclared_of(check: str, case: Case | Comparison) -> list[str]:
    """The same, of a case, or of a failing relation between several trials."""
    fits = [entry.id for entry in diagnoses.registry().values() if check in entry.explains and entry.rule(case)]
    return [name for name in fits[1:] if name not in _after(fits[0])]


def _after(name: str) -> set[str]:
    """The diagnoses that are tried after one because it says so, or because those say so that come after it."""
    found: set[str] = set()
    todo = [name]
    while todo:
        fresh = set(diagnoses.find(todo.pop()).before) - found
        found |= fresh
        todo += fresh
    return found
