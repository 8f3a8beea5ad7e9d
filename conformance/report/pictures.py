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
    """One sample, as ``data:`` addresses of PNG files; empty if there is no such picture."""

    sample: int
    """-1: a picture that arrived without a readable id."""
    file: str
    stored: str
    arrived: str


def pictures(report: Report, verdict: Verdict) -> list[Pictures]:
    """The pictures of the first samples that a failure names, and one without a readable id; none if none were kept.

    The trial's folder is read if the report names one and it still exists.
    """
    folder = next((trial.folder for trial in report.trials if trial.spec.id == verdict.trial), None)
    if folder is None:
        return []
    named = {*verdict.lost, *verdict.duplicated, *verdict.witnesses, -1}
    chosen = [found for found in snapshots(folder) if found.sample in named]
    chosen.sort(key=lambda found: found.sample < 0)  # pictures of no known sample come last
    return [Pictures(found.sample, found.file, _data(found.stored), _data(found.arrived)) for found in chosen[:_MOST]]


def _data(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:  # the folder was removed while it was read
        return ""
