"""``webdataset``: tar shards of members that share a key."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("webdataset")
