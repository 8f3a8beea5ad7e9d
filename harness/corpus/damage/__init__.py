"""The faults of stored samples: one sub-package for each family, one file for each fault.

They are registered on first use.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import random

from ...errors import UserError
from ...faults.base import from_json, registered, registry
from ...nearest import hint, unknown
from ..base import Choice, DiskFault


@functools.cache
def _load() -> None:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def disk_faults(kind: str | None = None) -> dict[str, type[DiskFault]]:
    """Every disk fault by name, or those that fit one corpus kind."""
    _load()
    found = {name: cls for name, cls in registry().items() if issubclass(cls, DiskFault)}
    return {name: cls for name, cls in found.items() if kind is None or kind in cls.kinds}


def instance(choice: Choice, turn: int, draw: random.Random) -> DiskFault:
    """The fault that the choice names, for its ``turn``-th unit; the chosen parameters replace drawn ones.

    Raises:
        UserError: no such disk fault, or it has no such parameter.
    """
    _load()
    cls = registered(choice.fault)
    if cls is None or not issubclass(cls, DiskFault):
        raise UserError(unknown("disk fault", choice.fault, disk_faults()))
    drawn = cls.turn(turn, draw)
    if not choice.parameters:
        return drawn
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in choice.parameters:
        if name not in names:
            raise UserError(f"fault {choice.fault!r} has no parameter {name!r}{hint(name, names)}")
    fault = from_json({**drawn.to_json(), **choice.parameters})
    assert isinstance(fault, DiskFault)
    return fault
