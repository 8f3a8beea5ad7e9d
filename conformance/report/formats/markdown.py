"""Markdown: tables for a page on the web."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import comparison_format

if TYPE_CHECKING:
    from ..compared import Comparison


@comparison_format("markdown", suffix=".md", title="Write the comparison as Markdown.")
def comparison(found: Comparison) -> str:
    """The loaders side by side, in tables."""
    from ..comparison import markdown

    return markdown(found)
