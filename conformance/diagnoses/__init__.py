"""One file for each family of diagnoses. Importing this package registers all of them, and puts them in order.

Other packages add their own by entry points of the group ``badbatch.diagnoses``.
"""

from __future__ import annotations

import importlib
import pkgutil

from ...harness.plugins import DIAGNOSES, load
from .base import Entry, find, registry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
load(DIAGNOSES)
registry()  # an impossible order is reported now, and not in the middle of a run

__all__ = ["Entry", "find", "registry"]
