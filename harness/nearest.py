"""Suggestions for an unknown name: the names similar to it, or all names."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3
_FEW = 24  # this many names fit into one line


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that the user may have meant, at most three, the most likely first.

    If a name is the beginning or a part of known names, these are returned (``jpeg-cut``: ``jpeg-cut-end``, …). Any
    other name is treated as a typing mistake, and only the most similar name is returned.
    """
    import difflib  # takes a millisecond, which only a mistake is worth

    names, wanted = sorted(set(known)), name.lower().strip("*?")
    if not wanted:
        return []
    begins = [known for known in names if known.lower().startswith(wanted)]
    typed = difflib.get_close_matches(wanted, [known.lower() for known in names], n=1, cutoff=0.9)
    close = [known for known in names if known.lower() in typed]
    if found := [*close, *(known for known in begins if known not in close)]:
        return found[:_MOST]
    parts = [known for known in names if len(wanted) > 2 and wanted in known.lower()]
    if parts:
        return parts[:_MOST]
    lowered = difflib.get_close_matches(wanted, [known.lower() for known in names], n=1)
    return [known for known in names if known.lower() in lowered][:_MOST]


def hint(name: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """``; did you mean 'a', 'b' or 'c'?``, or, if no name is similar, ``; known are …``.

    Args:
        otherwise: the text in place of the list of all names, which is left out if it would be long.
    """
    names = list(known)
    if found := [repr(one) for one in near(str(name), names)]:
        last = found.pop()
        return f"; did you mean {', '.join(found)} or {last}?" if found else f"; did you mean {last}?"
    if otherwise is not None:
        return f"; {otherwise}" if otherwise else ""
    return f"; known are {', '.join(names)}" if 0 < len(names) <= _FEW else ""


def listed(kind: str) -> str:
    """Where all names of a kind (``scenarios``, ``faults`` …) are listed."""
    return f"badbatch list {kind} lists all"


def unknown(what: str, name: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """One line about an unknown name, with :func:`hint`."""
    return f"unknown {what} {name!r}{hint(name, known, otherwise)}"
