"""``windows``: time windows in Parquet or Arrow files."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("windows", integers_are_ids=True)
