"""Causes the faults, runs the loader with them, and records what happened. It knows nothing about promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contract.job import Contract, Job, loader
    from .contract.samples import Sample
    from .errors import NotCarried
    from .plan import FaultPlan
    from .trial.history import History

__all__ = ["Contract", "FaultPlan", "History", "Job", "NotCarried", "Sample", "loader"]

_HOME = {
    "Contract": "contract.job",
    "Job": "contract.job",
    "loader": "contract.job",
    "NotCarried": "errors",
    "Sample": "contract.samples",
    "FaultPlan": "plan",
    "History": "trial.history",
}


def __getattr__(name: str) -> Any:
    # Lazy: a factory's module imports only the contract decorator.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
