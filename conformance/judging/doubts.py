"""Why a trial shows nothing: it was disturbed, its fault had no effect, or it was cut before anything could be seen."""

from __future__ import annotations

import numpy as np

from ...harness.errors import NotCarried
from ...harness.faults import Effect
from ...harness.processes.rank import BROKE
from ...harness.sources.base import truth
from ...harness.trial import endings
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from .accounting import unlisted_pipes
from .deaths import FROM_OUTSIDE
from .expectation import Expectation
from .patience import too_short

_NOT_CARRIED = f"{NotCarried.__module__}.{NotCarried.__qualname__}"


def disturbance(history: History) -> str:
    """Why a trial was not run as planned, not demonstrably because of the loader; empty: it was."""
    if history.torn:
        return f"the temporary folder could not be written to, so the record of the trial is incomplete ({history.torn})"
    for code in history.ended.ranks:
        if code == BROKE:
            lines = history.output.splitlines()
            return f"the harness itself failed in the trial: {lines[-1] if lines else 'without a message'}"
        if code is None or history.ended.cut is not None or _lethal(history.spec):
            continue
        if -code in FROM_OUTSIDE:
            return f"the machine killed the trial (signal {-code}): most often for lack of memory"
    if history.ended.cut in (endings.LOST, endings.INTERRUPTED):
        return f"the trial was {history.ended.cut}"
    return ""


def _lethal(spec: TrialSpec) -> bool:
    return any(fault.effect is Effect.CRASH for fault in spec.plan.values())


def not_struck(spec: TrialSpec) -> str:
    """Why no fault of a corpus could have an effect on this machine, so that nothing can be checked; empty: one did.

    An example: root may read a file without permissions.
    """
    idle = truth(spec).idle
    return f"no fault could have an effect when the corpus was made: {idle}" if idle else ""


def not_carried(history: History) -> str:
    """Why a loader with a format of its own cannot be judged: its factory says that the format cannot hold the trial's damage.

    Empty: it does not say so, or nothing in the trial is damaged or odd.
    """
    if not history.spec.plan:
        return ""
    raised = history.of(Kind.RAISED)
    for event in raised[np.isin(raised["flags"], (Where.FACTORY, Where.ITER))]:
        if history.text(event, "type") == _NOT_CARRIED:
            return " ".join(history.text(event).split())
    return ""


def doubt(history: History) -> str:
    """Why a trial without a violation proves nothing; empty: it does."""
    if _not_read(history):
        ended = history.of(Kind.READ_DONE)
        failed = ended[(ended["flags"] == 1) & np.isin(ended["sample"], list(history.spec.plan))]
        if len(failed):
            return f"the fault had no effect: reading the sample raised {history.text(failed[0])}"
        return "the fault had no effect: no process read the sample"
    if why := too_short(history):
        return why
    if not history.complete:
        how = "its process exited with code 0 in the middle of it" if str(history.ended) == "ended" else str(history.ended)
        return f"the trial did not run to its end: {how}"
    return ""


def _not_read(history: History) -> bool:
    """Whether no faulty sample was read.

    On disk a read without a record only counts as missing if it would kill or hang.
    """
    spec = history.spec
    seen_to_read = truth(spec).reads_recorded or any(fault.effect in (Effect.CRASH, Effect.STALL) for fault in spec.plan.values())
    return bool(spec.plan) and not len(history.struck) and seen_to_read


def not_drawn(history: History, expected: Expectation) -> str:
    """Why no fault could have an effect, if samples are drawn with replacement; empty: one did, or all are read."""
    if expected.contract.replacement and history.complete and _not_read(history):
        return "samples are drawn with replacement, and no faulty one was drawn"
    return ""


def not_taken(expected: Expectation) -> str:
    """Why nothing is checked if the loader accepts none of the formats of the damaged or odd samples; empty: it accepts one."""
    struck = [sample for sample in expected.spec.plan if sample < expected.spec.samples]
    if not struck or not expected.optional[struck].all():
        return ""
    declared = ", ".join(expected.contract.formats or ())
    return f"the loader declares formats={declared}: it accepts none of the files that are damaged or odd here"


def not_listed(history: History, expected: Expectation) -> str:
    """Why nothing is checked if all faults are named pipes that the loader does not list; empty: it does, or there are others."""
    struck = [sample for sample in expected.spec.plan if sample < expected.spec.samples]
    if not struck or not history.complete or not unlisted_pipes(history, expected)[struck].all():
        return ""
    return "the loader lists only regular files, and never opened the named pipe in the place of one"
