"""The pictures of a failing trial: for each sample that is blamed, what was stored and what arrived.

They lie in the trial's folder, as ``pictures/<sample>-stored.png`` and ``pictures/<sample>-arrived.png``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from .spec import TrialSpec

FOLDER = "pictures"
STORED, ARRIVED = "stored", "arrived"
_NAME = re.compile(rf"(-1|[0-9]+)-({STORED}|{ARRIVED})\.png")


@dataclass(frozen=True)
class Snapshot:
    """One sample of a failing trial: what was stored and what arrived, as PNG files."""

    sample: int
    """The sample's id; -1: a picture that arrived and in which no id could be read."""
    file: str
    """The stored file (or shard), relative to the corpus; empty where it is not known."""
    stored: Path | None
    """None: nothing of the stored file can be decoded, or the sample is not known."""
    arrived: Path | None
    """None: no picture of the sample arrived."""


def snapshots(folder: Path) -> list[Snapshot]:
    """The pictures in the folder of a trial, in order of the samples; empty where there are none.

    A folder that was cut short, or that holds no trial, gives what is readable and raises nothing.
    """
    found: dict[int, dict[str, Path]] = {}
    try:
        paths = sorted((folder / FOLDER).iterdir())
    except OSError:
        return []
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match and path.is_file():
            found.setdefault(int(match[1]), {})[match[2]] = path
    if not found:
        return []
    try:
        stored = TrialSpec.read(folder / "trial.json").stored
    except UserError:
        stored = None
    return [
        Snapshot(sample, stored.path_of(sample) if stored else "", found[sample].get(STORED), found[sample].get(ARRIVED))
        for sample in sorted(found)
    ]
