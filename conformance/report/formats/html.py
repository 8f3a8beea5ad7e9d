"""HTML: one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import comparison_format, report_format

if TYPE_CHECKING:
    from ..compared import Comparison
    from ..model import Report


@report_format("html", suffix=".html", title="Write the report as one self-contained HTML file.")
def reports(found: Sequence[Report]) -> str:
    """A page about one or several reports."""
    from .. import html

    return html.dumps(found)


@comparison_format("html", suffix=".html", title="Write the comparison as one self-contained HTML file.")
def comparison(found: Comparison) -> str:
    """A page with the loaders side by side."""
    from ..comparison import html

    return html(found)
