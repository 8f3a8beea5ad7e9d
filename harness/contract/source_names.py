"""The names of the sources, and how a source is written in the name of a trial. Imports nothing."""

from __future__ import annotations

IN_MEMORY = ("map", "stream", "sharded_stream")
ON_DISK = ("imagefolder", "parquet", "windows", "webdataset", "jsonl")
SOURCES = IN_MEMORY + ON_DISK

DEFAULT = "map"
"""The source that is not written in the name of a trial."""


def cell(topology: object, source: str) -> str:
    """The name of a source in a topology, as written between the brackets of a trial's id."""
    return str(topology) if source == DEFAULT else f"{topology},source={source}"
