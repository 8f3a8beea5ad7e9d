"""``imagefolder``: a folder a class, a picture a file."""

from __future__ import annotations

from .on_disk import OnDisk

SOURCE = OnDisk("imagefolder")
