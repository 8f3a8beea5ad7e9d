"""The samples of a source one by one, for loaders that read a format of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import NotCarried


@dataclasses.dataclass(frozen=True)
class Sample:
    """One sample as it is stored, damage included."""

    id: int
    state: str = "good"
    """``good``, ``odd`` (legal, but unusual), ``damaged``, ``contested`` (decoders disagree), ``hangs`` or ``slow``. For reports and
    tests of the writer: a writer that leaves out or repairs what is damaged fails the suite."""
    fault: str = ""
    """The name of the fault or oddity; empty: it has none."""
    path: str = ""
    """Its file, relative to ``job.root``; empty in memory."""
    key: str = ""
    """Its key, in a tar shard."""
    content: bytes | None = dataclasses.field(default=None, repr=False)
    parsed: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    lost: str = ""
    """Why another format cannot have its bytes or fields; empty: it can have one of them."""

    @property
    def data(self) -> bytes:
        """Its bytes: of its file, of its line, or of its members in order; a row of a table as JSON.

        Raises:
            NotCarried: it has none that another format could hold.
        """
        if self.lost or self.content is None:
            raise NotCarried(self._why("it is not stored as bytes"))
        return self.content

    @property
    def fields(self) -> Mapping[str, Any]:
        """Its fields as a plain reader gives them.

        These are the columns of a row, the keys of a JSON object, the bytes of each member of a shard by its ending, ``picture``
        (bytes) and ``label`` (its folder) of a picture, and ``id`` and ``x`` in memory.

        Raises:
            NotCarried: no reader gives them.
        """
        if self.lost or self.parsed is None:
            raise NotCarried(self._why("no reader can parse it"))
        return self.parsed

    def _why(self, otherwise: str) -> str:
        fault = f" ({self.fault})" if self.fault else ""
        return f"another format cannot hold sample {self.id}{fault}: {self.lost or otherwise}"
