"""The options of the suite: the table that both command lines are made from, and the settings that it is read into."""

from __future__ import annotations

from .option import Option, Place
from .settings import Options, to_options
from .table import BY_NAME, FAILURES, OPTIONS

__all__ = ["BY_NAME", "FAILURES", "OPTIONS", "Option", "Options", "Place", "to_options"]
