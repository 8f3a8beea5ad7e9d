"""The names of the sources, and how a source is written in the name of a trial. Imports no source."""

from __future__ import annotations

import pkgutil
from pathlib import Path

DEFAULT = "map"
"""The source that is not written in the name of a trial."""

_MODULES = pkgutil.iter_modules([str(Path(__file__).parents[1] / "sources" / "kinds")])
SOURCES: tuple[str, ...] = (DEFAULT, *sorted({module.name for module in _MODULES} - {DEFAULT}))
"""Every source, by the name of its module in :mod:`badbatch.harness.sources.kinds`."""


def cell(topology: object, source: str) -> str:
    """The name of a source in a topology, as written between the brackets of a trial's id."""
    return str(topology) if source == DEFAULT else f"{topology},source={source}"
