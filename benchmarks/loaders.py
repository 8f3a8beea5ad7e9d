"""How long the suite takes over the broken loaders of ``fixtures/``, compared with the honest ones, all measured in this run."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options

from fixtures.loaders.catalogue import LIARS

from .measure import Figure, seconds

_ROOT = Path(__file__).resolve().parents[1]
_NEVER_END = {"finite-epoch", "correct-timeout", "no-leftovers"}
"""Loaders that break these promises wait, or repeat something without end: they are the slow ones."""
CHOSEN = os.environ.get("BADBATCH_BENCHMARK_LOADERS", "")
"""``all``, or attributes below ``fixtures.loaders`` with commas between them; empty: those that wait without end."""


def figures() -> Iterator[Figure]:
    """One figure a loader: wall time over it, in units of the slowest honest loader with the same promise and sources."""
    honest: dict[str, tuple[float, float]] = {}
    for attr, counterpart in _pairs().items():
        if counterpart not in honest:
            honest[counterpart] = _suite(f"fixtures.loaders.{counterpart}")
        (wall, used), (honest_wall, honest_used) = _suite(f"fixtures.loaders.{attr}"), honest[counterpart]
        yield Figure(
            f"the suite over {attr}",
            wall / honest_wall,
            "times",
            3,
            False,
            f"{wall:.0f} s ({used:.0f} s of processor time) against {honest_wall:.0f} s ({honest_used:.0f} s) over {counterpart}",
        )


def _pairs() -> dict[str, str]:
    """From each loader that is measured to the honest loader with which it is compared."""
    named = CHOSEN.split(",")
    return {
        liar.attr: liar.honest
        for liar in LIARS
        if (liar.check in _NEVER_END if not CHOSEN else CHOSEN == "all" or liar.attr in named)
    }


def _suite(loader: str) -> tuple[float, float]:
    """Wall and processor seconds of the whole suite with its default options; processes of ended trials are included."""
    before = _used()
    with tempfile.TemporaryDirectory() as folder, Suite(loader, Options(), _ROOT, failures=Path(folder)) as suite:

        def run() -> None:
            suite.start()
            suite.prepare()
            suite.run()

        wall = seconds(run)
    return wall, _used() - before


def _used() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
