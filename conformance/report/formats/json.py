"""JSON, for other programs: docs/report-schema.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import comparison_format, report_format

if TYPE_CHECKING:
    from ..compared import Comparison
    from ..model import Report


@report_format("json", suffix=".json", title="Write the report as JSON (docs/report-schema.md); - is standard output.")
def reports(found: Sequence[Report]) -> str:
    """One object; several reports are a list of such objects."""
    from ..jsonfile import dumps_reports

    return dumps_reports(found)


@comparison_format("json", suffix=".json", title="Write the comparison as JSON (docs/report-schema.md); - is standard output.")
def comparison(found: Comparison) -> str:
    """One object that also contains the reports."""
    from ..jsonfile import dumps

    return dumps(found.to_json())
