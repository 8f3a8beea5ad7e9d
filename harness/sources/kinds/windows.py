"""``windows``: time windows in Parquet or Arrow files."""

from __future__ import annotations

from ..on_disk import OnDisk

SOURCE = OnDisk(
    "windows",
    "On disk: Parquet files (or .npz, or Arrow) below data/, with the columns id, start_us and values: windows"
    " of 64 numbers of a time series.",
    integers_are_ids=True,
)
