"""The scenarios by name: :mod:`.memory` and :mod:`.disk` contain the tables, and any other module may have one.

Other packages add their own by entry points of the group ``badbatch.scenarios``.
"""

from __future__ import annotations

import fnmatch
import importlib
import pkgutil
from collections.abc import Iterator, Sequence

from ...harness.articles import with_article
from ...harness.contract.source_names import DEFAULT
from ...harness.errors import UserError
from ...harness.nearest import listed, unknown
from ...harness.plugins import SCENARIOS, load
from . import disk
from .base import Scenario


def _added() -> Iterator[Scenario]:
    """The scenarios of other packages."""
    for found in load(SCENARIOS):
        for scenario in (found,) if isinstance(found, Scenario) else found:
            if not isinstance(scenario, Scenario):
                raise UserError(f"an entry point of {SCENARIOS} gives {with_article(type(scenario).__name__)}: it must give scenarios")
            yield scenario


def _own() -> Iterator[Scenario]:
    """The tables named ``SCENARIOS`` of the modules of this package: those in memory and on disk come first."""
    others = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("memory", "disk"))
    for name in ("memory", "disk", *others):
        yield from getattr(importlib.import_module(f"{__name__}.{name}"), "SCENARIOS", ())


_ALL: tuple[Scenario, ...] = (*_own(), *_added())
ON_DISK = tuple(scenario for scenario in _ALL if isinstance(scenario, disk.DiskScenario))
"""The scenarios over corpora, those of other packages included."""
PLAIN = tuple(scenario for scenario in _ALL if not isinstance(scenario, disk.DiskScenario))
"""All other scenarios."""


def find(name: str, source: str = DEFAULT) -> Scenario:
    """The scenario of that name for a source.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    for scenario in _ALL:
        if scenario.name == name and source in scenario.sources:
            return scenario
    raise UserError(unknown(f"scenario of {source}", name, names(source), listed("scenarios")))


def select(names: Sequence[str], patterns: Sequence[str], what: str, without: Sequence[str] = ()) -> list[str]:
    """The names that match any of the globs, in their own order; all of them if there is no glob.

    Args:
        without: globs of names to leave out.

    Raises:
        UserError: a glob that matches nothing (names the nearest), or nothing is left.
    """
    for pattern in [*patterns, *without]:
        if not fnmatch.filter(names, pattern):
            raise UserError(unknown(what, pattern, names, listed(f"{what}s")))
    chosen = [name for name in names if not patterns or _matches(name, patterns)]
    left = [name for name in chosen if not _matches(name, without)]
    if not left:
        raise UserError(f"no {what} is left: the globs to leave out ({', '.join(without)}) match all that were selected")
    return left


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def names(source: str | None = None) -> list[str]:
    """The names of the scenarios that apply to a source (None: to any), in the order in which they are run."""
    return list(dict.fromkeys(scenario.name for scenario in _ALL if source is None or source in scenario.sources))
