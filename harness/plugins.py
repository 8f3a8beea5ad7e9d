"""What other packages add: their entry points, by group.

A package names what it adds in its metadata, like ``[project.entry-points."badbatch.checks"]`` in ``pyproject.toml``.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .errors import UserError, one_line

CHECKS = "badbatch.checks"
"""Modules that register checks when they are imported."""
DIAGNOSES = "badbatch.diagnoses"
"""Modules that register diagnoses when they are imported."""
FAULTS = "badbatch.faults"
"""Modules that register faults when they are imported."""
SCENARIOS = "badbatch.scenarios"
"""Scenarios, or tuples of them."""
LOADERS = "badbatch.loaders"
"""Loader factories and classes: ``--loader NAME`` takes the name of the entry point."""


def named(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; if several packages use a name, the first one counts."""
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        found.setdefault(entry.name, entry)
    return found


def load(group: str) -> list[Any]:
    """Import what the entry points of a group name.

    Raises:
        UserError: one of them cannot be imported.
    """
    return [_load(entry, group) for entry in named(group).values()]


def _load(entry: EntryPoint, group: str) -> Any:
    try:
        return entry.load()
    except Exception as error:
        package = f" of the package {entry.dist.name}" if entry.dist is not None else ""
        raise UserError(
            f"the entry point {entry.name} = {entry.value} in {group}{package} cannot be imported: {one_line(error)}; fix or "
            "uninstall that package"
        ) from error
