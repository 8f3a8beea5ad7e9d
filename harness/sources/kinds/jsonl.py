"""``jsonl``: lines of JSON."""

from __future__ import annotations

from ..on_disk import OnDisk

SOURCE = OnDisk(
    "jsonl",
    "On disk: files of JSON lines below data/, one object a line, with the fields of parquet.",
    integers_are_ids=True,
)
