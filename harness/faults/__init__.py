"""One file for each fault. Importing this package registers all of them: ``from badbatch.harness.faults import Hang``.

Other packages add their own by entry points of the group ``badbatch.faults``.
"""

from __future__ import annotations

import importlib
import pkgutil

from ..plugins import FAULTS, load
from .base import DAMAGING, Effect, Fault, Read, fault, from_json, registry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
load(FAULTS)

_BY_CLASS_NAME = {cls.__name__: cls for cls in registry().values()}


def __getattr__(name: str) -> type[Fault]:
    # Every registered class can be imported from here, so a new fault needs no second edit.
    try:
        return _BY_CLASS_NAME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*__all__, *_BY_CLASS_NAME]


__all__ = ["DAMAGING", "Effect", "Fault", "Read", "fault", "from_json", "registry"]
