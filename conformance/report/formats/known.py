"""A new known file, from the failures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import report_format

if TYPE_CHECKING:
    from ..model import Report


@report_format(
    "write-known",
    suffix=".toml",
    title="Write the failures of this run as a new known file, with reasons to fill in.",
    complete=True,  # scenarios that did not run have unknown failures
    replaces=False,  # reasons that were filled in would be lost
)
def reports(found: Sequence[Report]) -> str:
    """One entry for each defect."""
    from .. import known_file

    return known_file.dumps(found)
