"""What reference readers say about one sample, in fixed words, and the state that follows from their results."""

from __future__ import annotations

from collections.abc import Mapping

from .base import State

WHOLE = "whole"
NOTHING = "nothing"
"""The reader ended without an error and never returned the sample, for example because it was after a clean cut."""
_LENGTH = 160  # of a reader's message in the manifest


def lossy(reason: str) -> str:
    """The reader raised no error, and returned something other than the sample."""
    return _line(f"lossy: {reason}")


def raises(error: BaseException | str) -> str:
    """The reader refused the sample: with an exception, or, for a string, by a rule that the corpus declares."""
    return _line(f"raises {type(error).__name__}: {error}" if isinstance(error, BaseException) else f"raises {error}")


def state_of(said: Mapping[str, str]) -> tuple[State, str]:
    """The state that follows from the readers' results, and the reason if the sample is not good.

    Good if all returned it whole; missing if none ever reached it; damaged if at least one refused it and none returned
    anything for it; otherwise contested: they disagree, or raised no error although content was lost.
    """
    if all(word == WHOLE for word in said.values()):
        return State.GOOD, ""
    if all(word == NOTHING for word in said.values()):
        return State.MISSING, "nothing of it is left, and no reader notices"
    if all(word == NOTHING or word.startswith("raises ") for word in said.values()):
        return State.DAMAGED, next(word for word in said.values() if word != NOTHING)
    return State.CONTESTED, "; ".join(f"{reader}: {word}" for reader, word in said.items() if word != WHOLE)


def _line(words: str) -> str:
    flat = " ".join(words.split())
    return flat if len(flat) <= _LENGTH else flat[: _LENGTH - 1] + "…"
