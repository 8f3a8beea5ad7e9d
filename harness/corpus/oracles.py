"""What reference readers say about one sample, in fixed words, and the state that follows from what they all said."""

from __future__ import annotations

from collections.abc import Mapping

from .base import State

WHOLE = "whole"
NOTHING = "nothing"
"""The reader ended without an error, and never gave the sample, for example because it was behind a clean cut."""
_LENGTH = 160  # of a reader's message in the manifest


def lossy(reason: str) -> str:
    """The reader was content, and gave something else than the sample."""
    return _line(f"lossy: {reason}")


def raises(error: BaseException | str) -> str:
    """The reader refused: with an exception, or, for a string, by a rule that the corpus declares."""
    return _line(f"raises {type(error).__name__}: {error}" if isinstance(error, BaseException) else f"raises {error}")


def state_of(said: Mapping[str, str]) -> tuple[State, str]:
    """The state of a sample of which the readers said this, and the reason where it is not good.

    Good when all had it whole; missing when none ever met it; damaged when at least one refused it and none gave
    anything for it; else contested: they disagree, or were content though content was lost.
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
