"""A corpus in a few lines of text: its samples, one example of each fault, and its paths that are not ordinary files."""

from __future__ import annotations

from .folders import folder
from .manifest import read_corpus
from .readme import NAMES, special_counts
from .show import Row, examples, headline


def summary(address: str) -> str:
    """The text, with one line for each state of each fault and oddity.

    Raises:
        UserError: there is no corpus, or it was edited and cannot be read.
    """
    where = folder(address)
    corpus = read_corpus(where)
    found = examples(where)
    lines = [headline(address, corpus)]
    for title, odd in (("damage", False), ("legal oddities", True)):
        lines += _table(title, [row for row in found if row.odd is odd])
    if special := special_counts(corpus):
        lines += ["", "not ordinary files (README.md in the corpus says what that means for a copy):"]
        lines += [f"  {number:,} {NAMES[kind]}" for kind, number in special.items()]
    return "\n".join([*lines, "", "A picture of each: add --html FILE or --png FILE."])


def _table(title: str, rows: list[Row]) -> list[str]:
    if not rows:
        return []
    cells = [(row.name, row.record.state.value, f"{row.count:,}", f"sample {row.record.id}", row.record.path) for row in rows]
    head = (title, "state", "samples", "for example", "")
    widths = [max(len(line[column]) for line in (head, *cells)) for column in range(4)]

    def text(line: tuple[str, ...]) -> str:
        parts = [cell.rjust(width) if column == 2 else cell.ljust(width) for column, (cell, width) in enumerate(zip(line, widths))]
        return "  ".join([*parts, line[4]]).rstrip()

    return ["", text(head), *(text(line) for line in cells)]
