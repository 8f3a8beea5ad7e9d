"""One file for each report format. Importing this package registers all of them, and imports nothing heavy.

The options of ``badbatch run``, ``badbatch compare``, ``badbatch replay``, ``badbatch judge`` and pytest are made from
the registries: a new format needs no second edit.
"""

from __future__ import annotations

import importlib
import pkgutil

from .base import Format, comparison_format, comparison_formats, report_format, report_formats

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Format", "comparison_format", "comparison_formats", "report_format", "report_formats"]
