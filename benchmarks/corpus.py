"""How fast corpora are made, copied and verified, as ratios; and whether memory stays flat. Run it on a quiet machine.

    python benchmarks/corpus.py [--samples 8000] [--memory]

Each pair is measured in turns, and the ratio is that of the medians. On a busy machine compare the processor times:
badbatch's are the sum over all processors, the others' are of one. Folders are new each time, and removed at the end:
some file systems are slow to reuse what was just deleted.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from badbatch.harness.corpus.base import Recipe
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.manifest import read_samples
from badbatch.harness.corpus.studio import studio
from badbatch.harness.corpus.verify import verify
from PIL import Image

ROUNDS = 3
OPTIONS: dict[str, dict[str, int]] = {"JPEG": {"quality": 82}, "PNG": {"compress_level": 1}}
"""The corpus's own settings: at Pillow's default level a PNG takes three times as long."""
_MEMORY = """
import resource, sys
from badbatch.harness.corpus.base import Recipe
from badbatch.harness.corpus.make import make
make(sys.argv[1], Recipe("imagefolder", int(sys.argv[2]), seed=1, size=(64, 64)))
print(max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024)
"""


def cost(work: Callable[[int], object], turn: int) -> tuple[float, float]:
    """The time and the processor time of that turn's work, including its processes; in seconds."""
    began, before = time.perf_counter(), os.times()
    work(turn)
    after = os.times()
    return time.perf_counter() - began, sum(after[:4]) - sum(before[:4])


def compared(name: str, ours: Callable[[int], object], theirs: Callable[[int], object], aim: str) -> None:
    """Print how many times faster badbatch is, over a few rounds in turns; the work gets the number of its round."""
    rounds = [(cost(ours, turn), cost(theirs, turn)) for turn in range(ROUNDS)]
    (wall, used), (their_wall, their_used) = (
        (statistics.median(times[0] for times in side), statistics.median(times[1] for times in side))
        for side in zip(*rounds)
    )
    print(
        f"{name:62} {wall:6.2f} s against {their_wall:6.2f} s: {their_wall / wall:5.2f} times as fast (aim: {aim}); "
        f"processor time {used:6.2f} s against {their_used:6.2f} s",
        flush=True,
    )


def saved_plainly(root: Path, pictures: list[tuple[str, str, Image.Image]], samples: int) -> None:
    """The loop that a user would write: Pillow saves of the same pictures, in their formats, into the same folders."""
    for name in {path.partition("/")[0] for path, _, _ in pictures}:
        (root / name).mkdir(parents=True)
    for index in range(samples):
        path, form, picture = pictures[index % len(pictures)]
        picture.save(root / f"{path}-{index}", form, **OPTIONS.get(form, {}))


def pictures_of(recipe: Recipe, root: Path) -> list[tuple[str, str, Image.Image]]:
    """Some of the corpus's pictures, decoded: path, format, pixels."""
    found: list[tuple[str, str, Image.Image]] = []
    place = studio(recipe.seed, recipe.size, recipe.samples)
    for record in read_samples(str(root)):
        data = (root / record.path).read_bytes() if record.fault is None else place.jpeg(record.id)
        picture = Image.open(io.BytesIO(data))
        picture.load()
        found.append((record.path, picture.format or "JPEG", picture))
        if len(found) == 1000:
            break
    return found


def against_saves(work: Path, title: str, recipe: Recipe, pictures: list[tuple[str, str, Image.Image]]) -> None:
    """Compare making a corpus with a plain loop that saves the same pictures."""
    compared(
        f"make, {title}, against a loop of Pillow saves",
        lambda turn: make(str(work / f"made {title} {turn}"), recipe),
        lambda turn: saved_plainly(work / f"saved {title} {turn}", pictures, recipe.samples),
        "3",
    )


def main() -> None:
    """Run all comparisons and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--memory", action="store_true", help="also make 10 thousand and 1 million small pictures")
    parser.add_argument("--folder", help="where to work; default: the temporary folder")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="badbatch-benchmark-", dir=options.folder))
    samples = options.samples
    try:
        for title, damage, oddities in (
            ("clean", 0, 0),
            ("damage 5 %", 0.05, 0),
            ("damage 5 %, oddities 10 %", 0.05, 0.1),
        ):
            recipe = Recipe("imagefolder", samples, seed=1, damage=damage, oddities=oddities)
            first = work / f"first {title}"
            make(str(first), recipe)
            pictures = pictures_of(recipe, first)
            against_saves(work, title, recipe, pictures)
        clean = work / "first clean"
        compared(
            "make --from, damage 5 %, against cp -r",
            lambda turn: make(str(work / f"from {turn}"), Recipe("imagefolder", 0, seed=1, origin=str(clean))),
            lambda turn: subprocess.run(["cp", "-r", clean, work / f"copy {turn}"], check=True),
            "1/3",
        )
        compared(
            "verify, against sha256sum of every file",
            lambda turn: list(verify(str(clean))),
            lambda turn: subprocess.run(
                f"find '{clean}' -type f -print0 | xargs -0 sha256sum > '{work}/sums'", shell=True, check=True
            ),
            "1",
        )
        if options.memory:
            for count in (10_000, 1_000_000):
                command = [sys.executable, "-c", _MEMORY, str(work / f"memory {count}"), str(count)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print(f"make, {count:,} samples of 64 × 64: the largest process had {done.stdout.strip()} MB")
        print(f"this process had {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
