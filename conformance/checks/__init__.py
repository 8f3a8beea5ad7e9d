"""One file a family of checks. Importing this package registers all of them."""

from __future__ import annotations

import importlib
import pkgutil

from .base import Check, Violation, check, find, registry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Check", "Violation", "check", "find", "registry"]
