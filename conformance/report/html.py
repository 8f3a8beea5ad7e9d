"""Reports as one plain, self-contained HTML file: no scripts, nothing fetched, readable by a screen reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..checks import registry
from ..checks.base import count, spans
from .broken import MOST_FIRST
from .digest import SIGNS, Digest, digest, kind_of
from .model import Report
from .printable import printable


def dumps(reports: Sequence[Report]) -> str:
    """A page over one or several reports."""
    return page("report.html.j2", digests=[digest(report) for report in reports], anchor=_anchor)


def page(template: str, **values: Any) -> str:
    """Fill one of our templates; everything that is put in is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(printable=printable, spans=spans)
    environment.globals.update(SIGNS=SIGNS, MOST_FIRST=MOST_FIRST, count=count, kind_of=kind_of, checks=registry(), grouped=_grouped)
    text: str = environment.get_template(template).render(**values)
    return text


def _grouped(found: Digest) -> list[tuple[str, int]]:
    """The sources of the columns, with how many columns each has, for a heading that spans them."""
    sources = [column.source for column in found.columns]
    return [(source, sources.count(source)) for source in dict.fromkeys(sources)]


def _anchor(*parts: object) -> str:
    """A name for a place in the page."""
    return "-".join("".join(c if c.isalnum() else "-" for c in str(part)) for part in parts)
