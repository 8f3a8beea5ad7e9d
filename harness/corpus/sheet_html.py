"""The contact sheet as one self-contained HTML page."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .show import COLOURS, Sheet, View

if TYPE_CHECKING:
    from PIL import Image


def html(sheet: Sheet) -> str:
    """The sheet as an HTML page that contains its pictures."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["base64"] = _base64
    parts = [("Damage", [row for row in sheet.rows if not row.odd]), ("Legal oddities", [row for row in sheet.rows if row.odd])]
    text: str = environment.get_template("sheet.html.j2").render(
        sheet=sheet, parts=parts, colours=COLOURS, absent=View(), corpus=json.dumps(sheet.corpus, indent=1)
    )
    return text


def _base64(picture: Image.Image) -> str:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")
