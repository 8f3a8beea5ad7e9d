"""What a loader reports as skipped: ``loader.skipped``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import LoaderError


class Skipped(NamedTuple):
    """What a loader reports as skipped."""

    total: int
    ids: list[int]
    """The ids that it names."""
    reasons: list[tuple[str, int]]
    """Each reason with the number of its skips, if it gives reasons."""


def skipped_of(loader: Any) -> Skipped | LoaderError | None:
    """What the loader reports; an error if it is invalid; None if there is no such attribute."""
    if not hasattr(loader, "skipped"):
        return None
    value = loader.skipped
    try:
        return read_skipped(value() if callable(value) else value)
    except LoaderError as error:
        return error


def read_skipped(value: Any) -> Skipped:
    """Count, ids and reasons of a loader's ``skipped``: a count, a list of ids, or a mapping from reason to either.

    Raises:
        LoaderError: something else.
    """
    if isinstance(value, Mapping):
        parts = {reason: read_skipped(part) for reason, part in value.items()}
        ids = [sample for part in parts.values() for sample in part.ids]
        reasons = [("" if reason is None else str(reason), part.total) for reason, part in parts.items() if part.total]
        return Skipped(sum(part.total for part in parts.values()), ids, reasons)
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        if hasattr(value, "__iter__") and getattr(value, "shape", None) != ():
            ids = [int(sample) for sample in value]
            return Skipped(len(ids), ids, [])
        return Skipped(int(value), [], [])
    except (TypeError, ValueError, OverflowError):
        raise LoaderError(
            f"loader.skipped is {repr(value)[:200]}: must be a count, a list of ids, or a mapping of either"
        ) from None
