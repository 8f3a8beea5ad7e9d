"""Converts the text of an option to its value, and checks values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...harness.contract.choices import START_METHODS
from ...harness.errors import UserError
from ...harness.nearest import hint

PLATFORM = "default"
"""The word for the platform's own start method, which is None in :class:`~badbatch.conformance.options.Options`."""


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{text!r} is not a whole number") from None


def wholes(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, each once."""
    return tuple(dict.fromkeys(whole(part.strip()) for part in text.split(",") if part.strip()))


def yes_or_no(text: str) -> bool:
    """``true`` or ``false``, and the other words for these in ini files."""
    try:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.strip().lower()]
    except KeyError:
        raise UserError(f"{text!r} must be true or false") from None


def seconds(text: str) -> float:
    """A number of seconds."""
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{text!r} is not a number of seconds") from None


def words(text: str) -> tuple[str | None, ...]:
    """Words with commas between them, each once; the word for the platform becomes None."""
    found = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    return tuple(None if word == PLATFORM else word for word in found)


def at_least(least: int) -> Callable[[Any], str]:
    """A check of one number."""

    def check(value: Any) -> str:
        return f"must be at least {least}, not {value}" if value < least else ""

    return check


def several_at_least(least: int, noun: str) -> Callable[[Any], str]:
    """A check of several numbers of ``noun``."""

    def check(values: Any) -> str:
        if not values:
            return "is empty: give one or more, with commas between them"
        return f"a trial cannot have {min(values)} {noun}" if min(values) < least else ""

    return check


def positive(value: float) -> str:
    """What is wrong with a number of seconds; it must be above 0 and finite."""
    return "" if 0 < value < float("inf") else f"must be a number of seconds above 0, not {value:g}"


def one_of(choices: Sequence[str]) -> Callable[[Any], str]:
    """A check of one word."""

    def check(value: Any) -> str:
        if value in choices:
            return ""
        return f"{value!r} is none of {', '.join(choices)}{hint(value, choices, '')}"

    return check


def start_methods(values: Any) -> str:
    """What is wrong with some start methods."""
    if not values:
        return f"is empty: give one or more of {', '.join(START_METHODS)}"
    problems = [one_of(START_METHODS)(value) for value in values if value is not None]
    return next((problem for problem in problems if problem), "")


def anything(value: Any) -> str:
    """Nothing is wrong with any value."""
    return ""
