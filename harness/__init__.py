"""Makes the trouble, runs the loader in it, records what happened. Knows nothing of promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .history import History
    from .job import Contract, Job, loader
    from .plan import FaultPlan

__all__ = ["Contract", "FaultPlan", "History", "Job", "loader"]

_HOME = {"Contract": "job", "Job": "job", "loader": "job", "FaultPlan": "plan", "History": "history"}


def __getattr__(name: str) -> Any:
    # Lazy: a factory's module pays for the contract decorator alone.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
