"""Prints every figure beside its aim.

``python -m benchmarks [trials] [record] [judging] [processor] [loaders]``; without names all of them.

Run it on a machine that does nothing else: the figures are ratios of one run, but the load of other programs varies.
"""

from __future__ import annotations

import importlib
import sys

NAMES = ("record", "judging", "trials", "processor", "loaders")


def main(names: list[str]) -> int:
    """Measure and print; returns 1 if an aim was missed."""
    if unknown := [name for name in names if name not in NAMES]:
        print(f"no benchmark is called {unknown[0]!r}; known are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or NAMES:
        for figure in importlib.import_module(f".{name}", __package__).figures():
            print(figure, flush=True)
            missed += not figure.reached
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
