"""Of which trial a process is a part: said in its environment, so that interpreters that it starts know it too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

VARIABLE = "BADBATCH_TRIAL"


class Membership(TypedDict):
    """What a process knows of its trial: the trial's folder, the rank, and the folder of the corpus."""

    folder: str
    rank: int
    root: str


def variables(folder: str | Path, rank: int, root: str | Path) -> dict[str, str]:
    """What to set in the environment of a process of the trial."""
    return {VARIABLE: json.dumps(Membership(folder=str(folder), rank=rank, root=str(root)))}


def membership() -> Membership | None:
    """The trial that this process is a part of; None: it is a part of none."""
    found: Membership | None = json.loads(os.environ.get(VARIABLE, "null"))
    return found
