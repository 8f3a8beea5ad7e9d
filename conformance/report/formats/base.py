"""What a report format is: a function from reports, or from a comparison, to a text, with its option."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from ..compared import Comparison
    from ..model import Report

T = TypeVar("T")
Writer = Callable[[T], str]


@dataclasses.dataclass(frozen=True)
class Format(Generic[T]):
    """One format of a file that a command writes."""

    name: str
    """The name of its option: ``json`` is switched on by ``--json FILE``, and in pytest by ``--loader-json FILE``."""
    suffix: str
    """The usual extension of its files: ``.json``."""
    title: str
    """What the option does, in a sentence."""
    dumps: Writer[T]
    """Makes the text of the file from what is reported."""
    in_pytest: bool = True
    """Whether pytest has the option as well."""
    complete: bool = False
    """Written only from a complete run: neither from an interrupted one, nor from one trial."""
    replaces: bool = True
    """Whether a file that exists is replaced. If not, an existing file is an error before the run."""


_REPORTS: dict[str, Format[Sequence[Report]]] = {}
_COMPARISONS: dict[str, Format[Comparison]] = {}


def report_format(
    name: str, *, suffix: str, title: str, in_pytest: bool = True, complete: bool = False, replaces: bool = True
) -> Callable[[Writer[Sequence[Report]]], Writer[Sequence[Report]]]:
    """Register a function from reports (one for each loader) to a text as the format ``name`` of a run.

    A module of this package imports what is heavy within its functions: the package is loaded at every start of pytest.

    Args:
        suffix, title, in_pytest, complete, replaces: as in :class:`Format`.
    """

    def register(dumps: Writer[Sequence[Report]]) -> Writer[Sequence[Report]]:
        _add(_REPORTS, Format(name, suffix, title, dumps, in_pytest, complete, replaces))
        return dumps

    return register


def comparison_format(name: str, *, suffix: str, title: str) -> Callable[[Writer[Comparison]], Writer[Comparison]]:
    """Register a function from a comparison to a text as the format ``name`` of ``badbatch compare``.

    Args:
        suffix, title: as in :class:`Format`.
    """

    def register(dumps: Writer[Comparison]) -> Writer[Comparison]:
        _add(_COMPARISONS, Format(name, suffix, title, dumps, in_pytest=False))
        return dumps

    return register


def _add(registry: dict[str, Format[T]], found: Format[T]) -> None:
    if found.name in registry:
        raise ValueError(f"two formats are called {found.name!r}")
    registry[found.name] = found


def report_formats() -> dict[str, Format[Sequence[Report]]]:
    """The formats of a run by name."""
    return dict(sorted(_REPORTS.items()))


def comparison_formats() -> dict[str, Format[Comparison]]:
    """The formats of a comparison by name."""
    return dict(sorted(_COMPARISONS.items()))
