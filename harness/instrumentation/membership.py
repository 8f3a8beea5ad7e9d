"""Which trial a process belongs to.

It is in the environment, so that interpreters that the process starts know it too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

VARIABLE = "BADBATCH_TRIAL"


class Membership(TypedDict):
    """What a process knows about its trial: the trial's folder, the rank, and the folder of the corpus."""

    folder: str
    rank: int
    root: str


def variables(folder: str | Path, rank: int, root: str | Path) -> dict[str, str]:
    """The environment variables for a process of the trial."""
    return {VARIABLE: json.dumps(Membership(folder=str(folder), rank=rank, root=str(root)))}


def membership() -> Membership | None:
    """The trial that this process belongs to; None: it belongs to none."""
    found: Membership | None = json.loads(os.environ.get(VARIABLE, "null"))
    return found
