"""A JPEG with a restart marker after each row of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....faults.base import Effect, fault
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("restart-markers", effect=Effect.LEGAL)
@dataclass(frozen=True)
class RestartMarkers(PictureOddity):
    """A JPEG with a restart marker after each row of units."""

    family = "coding"

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return canvas.jpeg(subsampling=2, restart_marker_rows=1), ".jpg"
