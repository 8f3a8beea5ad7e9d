"""One file an observation: a row of the behaviour card, and what it needs to know about each trial.

Importing this package registers all of them. The rows that describe errors and skips are in :mod:`..card`, before these.
"""

from __future__ import annotations

import importlib
import pkgutil

from .base import Fact, measured, observation, rows

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Fact", "measured", "observation", "rows"]
