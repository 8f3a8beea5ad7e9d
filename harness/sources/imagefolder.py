"""``imagefolder``: one folder for each class, one file for each picture."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("imagefolder")
