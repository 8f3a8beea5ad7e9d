"""``imagefolder``: one folder for each class, one file for each picture."""

from __future__ import annotations

from ..on_disk import OnDisk

SOURCE = OnDisk(
    "imagefolder",
    "On disk: pictures in <class>/<name>, mostly JPEG, some PNG, WebP, GIF and TIFF. Each shows an id mark "
    "from which its id is read back, after resizing to 64 × 64 too.",
)
