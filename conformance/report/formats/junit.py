"""JUnit XML, for servers that collect test results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import report_format

if TYPE_CHECKING:
    from ..model import Report


@report_format("junit", suffix=".xml", title="Write the verdicts as JUnit XML.", in_pytest=False)  # pytest has --junitxml
def reports(found: Sequence[Report]) -> str:
    """One test suite for each report, one test case for each verdict."""
    from .. import junit

    return junit.dumps(found)
