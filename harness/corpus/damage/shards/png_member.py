"""A PNG among JPEGs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from ....faults.base import Effect, fault
from ...shards import ShardFault


@fault("png-member", effect=Effect.LEGAL)
@dataclass(frozen=True)
class PngMember(ShardFault):
    """The sample's picture is a PNG, in a member with the extension .png."""

    kinds = ("webdataset",)
    odd = True
    family = "format"

    def change_row(self, row: dict[str, Any]) -> None:
        from PIL import Image

        sink = io.BytesIO()
        with Image.open(io.BytesIO(row["jpg"])) as picture:
            picture.save(sink, "PNG")
        fields = {
            "png" if name == "jpg" else name: sink.getvalue() if name == "jpg" else data for name, data in row.items()
        }
        row.clear()
        row.update(fields)
