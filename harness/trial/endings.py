"""Why a trial can be cut, and the names of the files in its folder. Imports nothing."""

from __future__ import annotations

OUT_OF_TIME = "out of time"
STALLED = "stalled"
INTERRUPTED = "interrupted"
LOST = "lost"
HUNG = (OUT_OF_TIME, STALLED)
"""It was cut since it did not end: at its deadline, or because nothing happened any more."""

TRIAL = "trial.json"
"""The trial, as :class:`~badbatch.harness.trial.spec.TrialSpec` writes it."""
ENDED = "ended.json"
"""How it ended, as the trial supervisor saw it."""
