"""Processor seconds of the whole suite compared with an earlier commit, both measured in this run, in turns."""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .measure import Figure

BEFORE = "c166158"
"""The commit to compare with; the variable ``BADBATCH_BENCHMARK_BEFORE`` names another."""
LOADER = "torch.utils.data:DataLoader"
_ROOT = Path(__file__).resolve().parents[1]
_ROUNDS = 1
_ONE_SUITE = """
import os, resource, sys, tempfile
import badbatch.harness
try:  # where it was at first
    from badbatch.conformance.commands.options import Options
except ImportError:
    from badbatch.conformance.options import Options
from badbatch.conformance.engine.suite import Suite
from pathlib import Path
assert Path(badbatch.harness.__file__).resolve().is_relative_to(Path(sys.argv[1]).resolve()), badbatch.harness.__file__
chosen = {"scenarios": tuple(sys.argv[3].split(","))} if sys.argv[3] else {}
with tempfile.TemporaryDirectory() as folder, Suite(sys.argv[2], Options(known=("torch",), **chosen), folder) as suite:
    suite.start()
    suite.prepare()
    report = suite.run()
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(one.ru_utime + one.ru_stime for one in used), len(report.trials))
"""
"""Runs with the code of either commit: it uses nothing that has changed since."""


def figures() -> Iterator[Figure]:
    """The scenarios that both commits know, over torch's loader. Processes of trials that were killed count as well."""
    commit = os.environ.get("BADBATCH_BENCHMARK_BEFORE", BEFORE)
    with tempfile.TemporaryDirectory() as folder:
        before, now = Path(folder) / "before", Path(folder) / "now"
        before.mkdir()
        archive = subprocess.run(
            ["git", "archive", commit, "harness", "conformance"], cwd=_ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(before / "tree", filter="data")
        chosen = ",".join(_scenarios(before / "tree"))
        used: dict[Path, list[float]] = {before: [], now: []}
        trials = {before: 0, now: 0}
        for place, tree in ((before, before / "tree"), (now, _ROOT)):
            (place / "badbatch").mkdir(parents=True)
            for package in ("harness", "conformance"):
                (place / "badbatch" / package).symlink_to(tree / package)
        for _ in range(_ROUNDS):
            for place, tree in ((before, before / "tree"), (now, _ROOT)):
                seconds, trials[place] = _suite(place, tree, chosen)
                used[place].append(seconds)
    old, new = statistics.median(used[before]), statistics.median(used[now])
    yield Figure(
        f"processor time of the suite over torch's loader, against {commit}",
        new / old,
        "times",
        0.67,
        False,
        f"{new:.0f} s for {trials[now]} trials against {old:.0f} s for {trials[before]}; "
        f"all measured: {_listed(used[now])} against {_listed(used[before])}",
    )


def _scenarios(tree: Path) -> list[str]:
    """The scenarios of sources in memory that the earlier commit has, and that this one still has."""
    from badbatch.conformance import scenarios

    text = (tree / "conformance" / "scenarios" / "memory.py").read_text(encoding="utf-8")
    return [name for name in scenarios.names("map") if f'"{name}"' in text]


def _suite(place: Path, tree: Path, chosen: str) -> tuple[float, int]:
    """Processor seconds and number of trials of one suite with the code in ``place``."""
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _ONE_SUITE, str(tree), LOADER, chosen],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    seconds, trials = done.stdout.split()
    return float(seconds), int(trials)


def _listed(seconds: list[float]) -> str:
    return ", ".join(f"{one:.0f}" for one in seconds)
