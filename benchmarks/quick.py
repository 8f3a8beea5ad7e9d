"""Which scenarios and topologies find most of the broken loaders of the fixtures: ``--quick`` is chosen from this.

``python -m benchmarks.quick`` runs every broken loader in every scenario and topology (about 20 minutes on two cores)
and prints the pair of topologies and the scenarios that a greedy set cover chooses.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from badbatch.conformance import scenarios
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.pool import Pool
from badbatch.conformance.engine.preparations import Preparations
from badbatch.conformance.engine.questions import Questions, stays_away
from badbatch.conformance.engine.tasks import Task
from badbatch.conformance.judging.doubts import not_struck
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.harness.contract.calling import resolve
from badbatch.harness.contract.source_names import SOURCES
from badbatch.harness.sources.base import find
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec

from fixtures.loaders.catalogue import LIARS

SCENARIOS, TOPOLOGIES = 10, 2
"""How many of each are chosen."""
_DEADLINE_S = 15.0  # a broken loader that waits for ever is found within this time, and there are many of them
_HANG = {"hung-read", "hung-holding-lock", "frozen", "decoder-hang"}
"""Not chosen: each costs many seconds with a loader that waits for ever, and a first look must be quick."""
_WAIT = {liar.loader for liar in LIARS if liar.check in ("finite-epoch", "no-leftovers", "correct-timeout")}
_ROOT = Path(__file__).parents[1]

Lie = tuple[str, str]
"""A broken loader, and the check that it breaks."""
LIES: frozenset[Lie] = frozenset((liar.attr, liar.check) for liar in LIARS)
Found = dict[str, dict[Topology, frozenset[Lie]]]
"""From scenario and topology to the broken loaders that are found there."""


def specs(folder: Path) -> Iterator[TrialSpec]:
    """Every trial that the suite runs with a broken loader, over the source for which it is broken."""
    options = Options(deadline=_DEADLINE_S)
    prepared = Preparations(folder)
    for loader, source in sorted({(liar.loader, liar.source) for liar in LIARS}):
        contract = resolve(loader).contract(source)
        for spec, scenario in Questions(loader, options, str(_ROOT), prepared).trials({source: contract}):
            if not stays_away(contract, spec.topology, scenario) and not not_struck(spec):
                yield spec


def measure() -> Found:
    """Run them all, once each."""
    found: Found = {}
    with Pool(LIARS[0].loader, _ROOT) as pool:
        pool.start()
        todo = list(specs(pool.scratch / "corpora"))
        for spec in todo:
            waits = scenarios.find(spec.scenario, spec.source).slow or spec.loader in _WAIT
            pool.submit(Task(lambda spec=spec: spec, waits=waits))  # type: ignore[misc]
        for number, history in enumerate(_ended(pool)):
            spec = history.spec
            loader = spec.loader.removeprefix("fixtures.loaders.")
            failed = {(loader, verdict.check) for verdict in judge(history) if verdict.mark is Mark.FAIL}
            cells = found.setdefault(spec.scenario, {})
            cells[spec.topology] = cells.get(spec.topology, frozenset()) | (failed & LIES)
            print(f"\r{number + 1} of {len(todo)} trials", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def _ended(pool: Pool) -> Iterator[History]:
    while pool.busy:
        for done in pool.advance():
            yield done.history
            shutil.rmtree(done.folder, ignore_errors=True)


def cover(found: Found, topologies: Sequence[Topology]) -> list[tuple[str, frozenset[Lie]]]:
    """Scenarios, each with the broken loaders that it adds to those before it: always the one that adds most.

    Among equals, the one that breaks a check which was not broken before, then the one that finds most by itself.
    """
    every = {name: frozenset[Lie]().union(*(cells.get(shape, ()) for shape in topologies)) for name, cells in found.items()}
    chosen: list[tuple[str, frozenset[Lie]]] = []
    seen: frozenset[Lie] = frozenset()
    while every.keys() - {name for name, _ in chosen} and len(chosen) < SCENARIOS:

        def worth(name: str) -> tuple[int, int, int]:
            added = every[name] - seen  # noqa: B023 - called at once
            new_checks = {check for _, check in added} - {check for _, check in seen}  # noqa: B023
            return len(added), len(new_checks), len(every[name])

        name = max(sorted(every.keys() - {name for name, _ in chosen}), key=worth)
        chosen.append((name, every[name] - seen))
        seen |= every[name]
    return chosen


def main() -> None:
    """Measure, and print what is chosen for sources in memory and on disk."""
    found = measure()
    for where, in_memory in (("In memory", True), ("On disk", False)):
        lies = frozenset((liar.attr, liar.check) for liar in LIARS if (find(liar.source).offers == "dataset") is in_memory)
        names = {name for source in SOURCES if (find(source).offers == "dataset") is in_memory for name in scenarios.names(source)} - _HANG
        print(f"\n## {where}\n")
        show(
            {name: {shape: some & lies for shape, some in cells.items()} for name, cells in found.items() if name in names}, lies
        )


def show(found: Found, lies: frozenset[Lie]) -> None:
    """Print the pairs of topologies, and the cover of the best."""
    shapes = sorted({shape for cells in found.values() for shape in cells if not shape.persistent}, key=str)
    covers = {pair: cover(found, pair) for pair in itertools.combinations(shapes, TOPOLOGIES)}
    sizes = {pair: sum(len(added) for _, added in chosen) for pair, chosen in covers.items()}
    print(f"| topologies | lies found by {SCENARIOS} scenarios, of {len(lies)} |\n| --- | --- |")
    for pair, size in sizes.items():
        print(f"| `{pair[0]}` and `{pair[1]}` | {size} |")
    best = max(sizes, key=lambda pair: sizes[pair])
    print(f"\n`{best[0]}` and `{best[1]}`:\n\n| scenario | lies found | new | all so far |\n| --- | --- | --- | --- |")
    total = 0
    for name, added in covers[best]:
        total += len(added)
        finds = frozenset[Lie]().union(*(found[name].get(shape, ()) for shape in best))
        print(f"| {name} | {len(finds)} | {len(added)} | {total} |")
    seen = frozenset[Lie]().union(*(added for _, added in covers[best]))
    anywhere = frozenset[Lie]().union(*(lies for cells in found.values() for lies in cells.values()))
    print("\nFound only by the whole suite:", ", ".join(sorted(attr for attr, _ in anywhere - seen)) or "none")
    print("Found by neither, in this run:", ", ".join(sorted(attr for attr, _ in lies - anywhere)) or "none")


if __name__ == "__main__":
    main()
