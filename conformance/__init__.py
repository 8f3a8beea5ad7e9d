"""Says what a loader owes, and whether it delivered it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.api import check_loader
    from .pytest.parametrize import parametrize_with_checks

__all__ = ["check_loader", "parametrize_with_checks"]


def __getattr__(name: str) -> Any:
    if name == "check_loader":
        from .engine.api import check_loader

        return check_loader
    if name == "parametrize_with_checks":
        from .pytest.parametrize import parametrize_with_checks

        return parametrize_with_checks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
