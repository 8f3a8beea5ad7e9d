"""The pictures that a card shows of a failing trial: what was stored, and what arrived."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path

from ...harness.trial.snapshots import snapshots
from ..judging.verdict import Verdict
from .model import Report

_MOST = 4  # samples on a card


@dataclasses.dataclass(frozen=True)
class Pictures:
    """One sample, as ``data:`` addresses of PNG files; empty where there is no such picture."""

    sample: int
    """-1: a picture that arrived and in which no id could be read."""
    file: str
    stored: str
    arrived: str


def pictures(report: Report, verdict: Verdict) -> list[Pictures]:
    """The pictures of the first samples that a failure names, and one that nobody could read; none where none were kept.

    The trial's folder is read where the report names one and it is still there.
    """
    folder = next((trial.folder for trial in report.trials if trial.spec.id == verdict.trial), None)
    if folder is None:
        return []
    named = {*verdict.lost, *verdict.duplicated, *verdict.witnesses, -1}
    chosen = [found for found in snapshots(folder) if found.sample in named]
    chosen.sort(key=lambda found: found.sample < 0)  # what belongs to no sample comes last
    return [Pictures(found.sample, found.file, _data(found.stored), _data(found.arrived)) for found in chosen[:_MOST]]


def _data(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:  # the folder goes while it is read
        return ""
