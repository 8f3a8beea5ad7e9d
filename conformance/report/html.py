"""Reports as one plain, self-contained HTML file: no scripts, nothing downloaded, readable by a screen reader."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checks import registry
from ..checks.base import count, spans
from .broken import MOST_FIRST
from .digest import SIGNS, digest, kind_of
from .matrix import tables
from .model import Report
from .pictures import pictures
from .places import heads
from .printable import printable
from .terminal import LOOK_AT_FILES

if TYPE_CHECKING:
    from markupsafe import Markup

_ADDRESS = re.compile(r"https?://[^\s<>\"']+")
_AFTER_AN_ADDRESS = ".,;:!?)]}"  # belongs to the sentence around an address


def dumps(reports: Sequence[Report]) -> str:
    """A page about one or several reports."""
    return page("report.html.j2", digests=[digest(report) for report in reports])


def page(template: str, **values: Any) -> str:
    """Fill one of the templates; everything that is inserted is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(printable=printable, spans=spans, linked=linked)
    environment.globals.update(SIGNS=SIGNS, MOST_FIRST=MOST_FIRST, checks=registry(), LOOK_AT_FILES=LOOK_AT_FILES)
    environment.globals.update(count=count, kind_of=kind_of, tables=tables, heads=heads, pictures=pictures)
    text: str = environment.get_template(template).render(**values)
    return text


def linked(text: str) -> Markup:
    """A text for a page: printable and escaped, with each web address in it as a link."""
    from markupsafe import Markup

    clean = printable(text)
    parts, at = [], 0
    for found in _ADDRESS.finditer(clean):
        address = found.group().rstrip(_AFTER_AN_ADDRESS)
        shown = html.escape(address)
        parts += [html.escape(clean[at : found.start()]), f'<a href="{shown}" rel="noreferrer">{shown}</a>']
        at = found.start() + len(address)
    return Markup("".join([*parts, html.escape(clean[at:])]))
