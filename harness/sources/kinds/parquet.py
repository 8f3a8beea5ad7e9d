"""``parquet``: rows in Parquet files."""

from __future__ import annotations

from ..on_disk import OnDisk

SOURCE = OnDisk(
    "parquet",
    "On disk: Parquet files below data/, with the columns id, text, number, amount and spans (lists of lists).",
    integers_are_ids=True,
)
