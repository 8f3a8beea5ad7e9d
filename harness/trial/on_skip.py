"""A job's ``on_skip``: it records each sample that the loader reports as skipped."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable

from .event_log import Kind, Recorder


class OnSkip:
    """The job's ``on_skip``: records from any process that calls it. Picklable.

    Args:
        names: from a path or key to the sample's id, for sources on disk.
    """

    def __init__(self, recorder: Recorder, names: Callable[[str], int | None] | None = None) -> None:
        self._recorder = recorder
        self._names = names

    def __call__(self, sample: int | str | os.PathLike[str], reason: BaseException | str) -> None:
        """Record one skip.

        Raises:
            TypeError: ``sample`` cannot name a sample.
        """
        if isinstance(sample, (str, os.PathLike)) and self._names is not None:
            found = self._names(os.fspath(sample))
            number = -1 if found is None else found
        else:
            try:
                number = operator.index(sample)  # type: ignore[arg-type]
            except TypeError:
                besides = ", or its path or key" if self._names is not None else ""
                raise TypeError(
                    f"job.on_skip takes the sample's number (-1 where it is not known){besides}, not {sample!r}"
                ) from None
        self._recorder(Kind.SKIPPED, number, aux=self._recorder.error(reason))
