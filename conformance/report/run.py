"""How a report was made: with which badbatch, when, by which command, and over how many samples."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata

from ...harness.plain import Plain


@dataclasses.dataclass(frozen=True)
class Run(Plain):
    """The settings and the time of a run. Empty or None: not known, as in reports of badbatch 0.1.0."""

    badbatch: str = ""
    """The version that ran the suite."""
    began: str = ""
    """ISO 8601, to the second, in UTC: ``2026-01-31T12:00:00+00:00``."""
    command: str = ""
    """As it was typed, quoted for a shell."""
    samples: int | None = None
    """Samples in a source, unless the scenario sets it."""
    batch_size: int | None = None
    """Samples in a batch, unless the scenario sets it."""

    @classmethod
    def now(cls, samples: int, batch_size: int, command: str = "") -> Run:
        """A run that begins now, with the installed badbatch."""
        began = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        return cls(importlib.metadata.version("badbatch"), began, command, samples, batch_size)

    @property
    def date(self) -> str:
        """``2026-01-31 12:00 UTC``; empty if it is not known."""
        try:
            return f"{datetime.datetime.fromisoformat(self.began):%Y-%m-%d %H:%M} UTC"
        except ValueError:
            return self.began

    @property
    def size(self) -> str:
        """``40 samples in batches of 4``; empty if it is not known."""
        return "" if self.samples is None else f"{self.samples} samples in batches of {self.batch_size}"
