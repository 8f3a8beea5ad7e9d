"""What checks and relations are: pure functions from recorded trials to violations, with a stable id and a reason to care."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from ...harness.contract.job import Contract
from ...harness.errors import UserError
from ...harness.faults import Effect
from ...harness.nearest import unknown
from ...harness.sources.truth import Owed
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Epoch, Ledger

CheckFunction = Callable[[History, Ledger, Expectation], "Iterator[Violation]"]


@dataclasses.dataclass(frozen=True)
class Violation:
    """One broken promise, with the samples that show it."""

    promised: str
    happened: str
    lost: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    witnesses: tuple[int, ...] = ()
    """Other samples that show it, as few as possible."""
    share: str = ""
    """Whose samples they were, if that is known: ``all in worker 0's share``."""
    follows_from: str = ""
    """The id of the check whose violation explains this one, if the history shows it; empty: none is known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Promise:
    """What a loader is held to: a check or a relation."""

    id: str
    title: str
    why: str
    """Why users should care."""
    source: str
    """Where the rule comes from."""
    exercised: Callable[[TrialSpec], bool]
    """Whether a trial of this kind can break it."""
    needs: Callable[[Contract, TrialSpec], str | None]
    """Why it does not apply under a contract; None: it does."""
    function: Callable[..., Iterator[Violation]]
    """The generator of violations; its docstring says what is judged."""
    implies: tuple[str, ...] = ()
    """The checks whose violations a violation of this one explains, in the same trial."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check(Promise):
    """One property of a trial."""

    can_acquit_cut: bool
    """Whether it can pass a trial that was cut short."""

    def __call__(self, history: History, ledger: Ledger, expected: Expectation) -> list[Violation]:
        """The violations in one trial."""
        return list(self.function(history, ledger, expected))


@dataclasses.dataclass(frozen=True, eq=False)
class Recorded:
    """The trial of one role, as it was recorded and accounted for."""

    history: History
    ledger: Ledger
    expected: Expectation

    @property
    def spec(self) -> TrialSpec:
        """The question that it answers."""
        return self.history.spec


RelationFunction = Callable[[Mapping[str, Recorded]], "Iterator[Violation]"]


def _itself(spec: TrialSpec) -> TrialSpec | None:
    return spec


@dataclasses.dataclass(frozen=True)
class Role:
    """One of the trials that a relation compares."""

    name: str
    """A word; also the name of the folder in which its trial is stored."""
    words: str
    """Which trial it is, for ``badbatch explain``."""
    of: Callable[[TrialSpec], TrialSpec | None] = _itself
    """From the trial that the relation is asked of to the trial of this role; None: there is none."""
    optional: bool = False
    """Whether the relation is asked without it, where there is no trial for it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relation(Promise):
    """One property of several trials of one loader. It is asked of one of them, and its verdict is part of that one's."""

    roles: tuple[Role, ...]
    """The first is that of the trial of which it is asked."""
    explained_by: tuple[str, ...]
    """The checks whose violation in one of the trials explains a violation of this one."""

    @property
    def subject(self) -> str:
        """The role of the trial of which it is asked."""
        return self.roles[0].name

    def __call__(self, trials: Mapping[str, Recorded]) -> list[Violation]:
        """The violations between the trials, by role; optional roles may be missing."""
        return list(self.function(trials))

    def trials(self, spec: TrialSpec) -> dict[str, TrialSpec]:
        """From each role to its trial, the one that is asked about first; empty: nothing is asked of this trial."""
        if not self.exercised(spec):
            return {}
        found = {self.subject: spec}
        for role in self.roles[1:]:
            other = role.of(spec)
            if other is not None and other.id not in {one.id for one in found.values()}:
                found[role.name] = other
            elif not role.optional:
                return {}
        return found if len(found) > 1 else {}


_REGISTRY: dict[str, Promise] = {}


def always(spec: TrialSpec) -> bool:
    """Every trial exercises the check."""
    return True


def with_effects(*effects: Effect) -> Callable[[TrialSpec], bool]:
    """Trials whose plan has one of these effects exercise the check."""

    def exercised(spec: TrialSpec) -> bool:
        return any(fault.effect in effects for fault in spec.plan.values())

    return exercised


def nothing_needed(contract: Contract, spec: TrialSpec) -> str | None:
    """Every contract has what the check needs."""
    return None


def check(
    id: str,
    *,
    title: str,
    why: str,
    source: str,
    exercised: Callable[[TrialSpec], bool] = always,
    needs: Callable[[Contract, TrialSpec], str | None] = nothing_needed,
    can_acquit_cut: bool = False,
    implies: Sequence[str] = (),
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a generator of violations as the check ``id``.

    Args:
        implies: the checks whose violations a violation of this one explains, in the same trial.
    """

    def register(function: CheckFunction) -> CheckFunction:
        _add(
            Check(
                id=id,
                title=title,
                why=why,
                source=source,
                exercised=exercised,
                needs=needs,
                implies=tuple(implies),
                can_acquit_cut=can_acquit_cut,
                function=function,
            )
        )
        return function

    return register


def relation(
    id: str,
    *,
    title: str,
    why: str,
    source: str,
    roles: Sequence[Role],
    exercised: Callable[[TrialSpec], bool] = always,
    needs: Callable[[Contract, TrialSpec], str | None] = nothing_needed,
    implies: Sequence[str] = (),
    explained_by: Sequence[str] = (),
) -> Callable[[RelationFunction], RelationFunction]:
    """Register a generator of violations as the relation ``id``.

    It is asked of each selected trial that exercises it. The engine takes the trials of the other roles from those that are
    selected as well, and adds those that are not.

    Args:
        roles: of the trial of which it is asked, and of those that are compared with it.
        implies: the checks whose violations a violation of this one explains, in the trial of which it is asked.
        explained_by: the checks whose violation in one of the trials explains a violation of this one.
    """
    names = [role.name for role in roles]
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"the relation {id!r} needs two or more roles with different names, not {', '.join(names)}")

    def register(function: RelationFunction) -> RelationFunction:
        _add(
            Relation(
                id=id,
                title=title,
                why=why,
                source=source,
                exercised=exercised,
                needs=needs,
                implies=tuple(implies),
                roles=tuple(roles),
                explained_by=tuple(explained_by),
                function=function,
            )
        )
        return function

    return register


def _add(one: Promise) -> None:
    if one.id in _REGISTRY:
        raise ValueError(f"two checks are called {one.id!r}")
    _REGISTRY[one.id] = one


def registry() -> dict[str, Promise]:
    """All checks and relations by id, in order of their ids."""
    return dict(sorted(_REGISTRY.items()))


def of_one_trial() -> dict[str, Check]:
    """The checks by id, in order of their ids."""
    return {name: one for name, one in registry().items() if isinstance(one, Check)}


def relations() -> dict[str, Relation]:
    """The relations by id, in order of their ids."""
    return {name: one for name, one in registry().items() if isinstance(one, Relation)}


def causes_first() -> list[str]:
    """The ids of all checks and relations, each before those that it explains.

    Raises:
        graphlib.CycleError: they explain each other.
    """
    behind: dict[str, set[str]] = {name: set() for name in registry()}
    for name, one in registry().items():
        for implied in one.implies:
            behind.setdefault(implied, set()).add(name)
        if isinstance(one, Relation):
            behind[name].update(one.explained_by)
    return [name for name in TopologicalSorter(behind).static_order() if name in _REGISTRY]


def find(name: str) -> Promise:
    """The check or relation of that id.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        raise UserError(unknown("check", name, sorted(_REGISTRY))) from None


def from_an_error(epoch: Epoch, expected: Expectation) -> str:
    """The check that explains what an epoch lacks, if the loader raised although nothing is damaged; empty: it did not.

    For ``follows_from`` of a violation.
    """
    return "contract-kept" if any(epoch.errors) and not np.any(expected.owed != Owed.GOOD) else ""


def spans(samples: Any, limit: int = 5) -> str:
    """Sample ids as ``8-11, 16-19``: at most ``limit`` spans, then how many more samples there are.

    >>> spans([8, 9, 10, 11, 16, 5])
    '5, 8-11, 16'
    """
    ids = sorted({int(sample) for sample in samples})
    found: list[tuple[int, int]] = []
    for sample in ids:
        if found and found[-1][1] == sample - 1:
            found[-1] = (found[-1][0], sample)
        else:
            found.append((sample, sample))
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found[:limit])
    rest = sum(last - first + 1 for first, last in found[limit:])
    return f"{shown} and {rest} more" if rest else shown


def was(number: int) -> str:
    """``was`` or ``were``."""
    return "was" if number == 1 else "were"


def count(number: int, noun: str) -> str:
    """``1 sample``, ``3 samples``, ``2 batches``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"
