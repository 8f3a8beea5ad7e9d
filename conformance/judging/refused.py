"""States that a loader refuses to load."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from .expectation import Expectation
from .raised import DURING_EPOCH, quoted


def refusals(history: History) -> dict[int, str]:
    """From a phase that could not load its state to what raised an error; empty: there was no state to load.

    A loader may look at the state in ``load_state_dict()``, or later: in ``iter()``, or in another topology in the first
    ``next()``.
    """
    saved = set(history.of(Kind.SAVED)["phase"].tolist())
    got = history.of(Kind.GOT)
    found: dict[int, str] = {}
    for event in history.of(Kind.RAISED):
        phase, where = int(event["phase"]), Where(int(event["flags"]))
        load = history.spec.phases[phase].load
        if load is None or phase in found:
            continue
        if where is Where.LOAD:
            found[phase] = f"it raised {quoted(history, event)}" if load in saved else ""
        elif where is Where.ITER or (where is Where.NEXT and moved(history.spec, phase)):
            mine = (got["phase"] == phase) & (got["rank"] == event["rank"])
            if not np.any(got["time"][mine] < event["time"]):
                found[phase] = f"{'iter()' if where is Where.ITER else 'next()'} raised {quoted(history, event)}"
    return found


def moved(spec: TrialSpec, number: int) -> bool:
    """Whether a phase loads a state of another topology."""
    load = spec.phases[number].load
    return load is not None and spec.in_phase(number).topology != spec.in_phase(load).topology


def may_refuse(expected: Expectation, phase: int) -> bool:
    """Whether a state may be refused in a phase: in another topology, or in any if the contract says so."""
    return expected.contract.resume == "refuse" or moved(expected.spec, phase)


def errors_of_refusals(history: History, epoch: int) -> int:
    """The errors of a logical epoch in phases whose state was refused: ``resume-exact`` judges them."""
    raised = history.of(Kind.RAISED, epoch=epoch)
    return int(np.count_nonzero(np.isin(raised["phase"], list(refusals(history))) & np.isin(raised["flags"], DURING_EPOCH)))
