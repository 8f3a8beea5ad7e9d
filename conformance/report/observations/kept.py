"""What stays in the loader's process once, however many loaders are built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .base import observation

if TYPE_CHECKING:
    from ..result import TrialResult

_MOST = 3  # names that the row lists


@observation("kept")
def kept(trials: Sequence[TrialResult]) -> Iterator[str]:
    """The names of what is kept, each once."""
    found = list(dict.fromkeys(name for trial in trials for name in trial.observed.kept))
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    if found:
        yield f"until exit: {', '.join(found[:_MOST])}{more}"
