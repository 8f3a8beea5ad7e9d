"""``webdataset``: tar shards in which the members of a sample share a key."""

from __future__ import annotations

from ..on_disk import OnDisk

SOURCE = OnDisk(
    "webdataset",
    "On disk: tar shards below data/. The members of a sample share a key: <key>.jpg, .cls, .json and .txt.",
)
