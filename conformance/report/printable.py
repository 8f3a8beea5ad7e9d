"""Makes a loader's output safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """One line without control characters: a loader's output must not move the cursor."""
    words = " ".join(text.split())
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in words)
    return clean.encode("utf-8", "backslashreplace").decode("utf-8")
