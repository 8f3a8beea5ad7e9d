"""``README.md`` of a corpus: what the folder is, and what in it can block or break a program that copies or reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .damage import disk_faults

_READERS = {
    "fifo": "Opening one to read waits for a writer, and may wait for ever. `cat`, `sha256sum` and `cp` of such a path hang; "
    "`cp -r` and GNU `tar` copy the pipe itself, other versions of them may hang; Python's `shutil.copytree` fails. "
    "Find them with `find . -type p`, and read the corpus without them with `find . -type f`.",
    "dangling-link": "Opening one fails, and so does a copy that follows links.",
    "directory": "It is empty, and has the name of a file.",
    "no-permission": "Nobody but root can read it, so a copy made by another user fails at it.",
}
NAMES = {
    "fifo": "named pipes (FIFOs)",
    "dangling-link": "symbolic links to files that do not exist",
    "directory": "folders in place of files",
    "no-permission": "files without permission to read",
}


def special_counts(corpus: Mapping[str, Any]) -> dict[str, int]:
    """How many paths of a corpus are not ordinary files, by what they are (``fifo`` …); ``corpus`` is its ``corpus.badbatch``."""
    found: dict[str, int] = {}
    known = disk_faults()
    for name, states in corpus["counts"]["fault"].items():
        special = getattr(known.get(name), "special", None)
        if special in NAMES:
            found[special] = found.get(special, 0) + sum(states.values())
    return found


def readme(corpus: Mapping[str, Any]) -> str:
    """The text, in Markdown. It names no version and no date, so that the same recipe gives the same bytes."""
    recipe, counts = corpus["recipe"], corpus["counts"]
    states = ", ".join(f"{number:,} {state}" for state, number in counts["state"].items())
    lines = [
        "# A corpus of damaged data",
        "",
        f"badbatch made this folder: kind `{recipe['kind']}`, {counts['samples']:,} samples ({states}), seed {corpus['seed']}.",
        "Much of it is damaged on purpose. Do not train on it.",
        "",
        "- `manifest.badbatch` says for every sample whether it is good or damaged, by which fault, and in which file it is.",
        "- `corpus.badbatch` contains the recipe, the counts and the versions of the libraries.",
        "- `badbatch corpus show .` lists the faults, and `badbatch corpus verify .` compares every byte with the manifest.",
    ]
    special = special_counts(corpus)
    if special:
        lines += ["", "## Some paths are not ordinary files", ""]
        lines += [f"- {number:,} × {NAMES[kind]}. {_READERS[kind]}" for kind, number in special.items()]
    if "fifo" in special:
        lines += ["", "`badbatch corpus make --no-pipes` makes a corpus without named pipes."]
    return "\n".join(lines) + "\n"
