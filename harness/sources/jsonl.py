"""``jsonl``: lines of JSON."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("jsonl", integers_are_ids=True)
