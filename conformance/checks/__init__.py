"""One file for each family of checks or relations. Importing this package registers all of them.

Other packages add their own by entry points of the group ``badbatch.checks``.
"""

from __future__ import annotations

import importlib
import pkgutil

from ...harness.plugins import CHECKS, load
from .base import (
    Check,
    Promise,
    Recorded,
    Relation,
    Role,
    Violation,
    causes_first,
    check,
    find,
    of_one_trial,
    registry,
    relation,
    relations,
)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
load(CHECKS)

__all__ = [
    "Check",
    "Promise",
    "Recorded",
    "Relation",
    "Role",
    "Violation",
    "causes_first",
    "check",
    "find",
    "of_one_trial",
    "registry",
    "relation",
    "relations",
]
