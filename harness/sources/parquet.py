"""``parquet``: rows in Parquet files."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("parquet", integers_are_ids=True)
