"""Does once, in the zygote, what every rank would otherwise repeat: late imports, and what libraries cache on first use."""

from __future__ import annotations

import contextlib
import importlib
import sys

from ..errors import BadbatchError
from ..plan import FaultPlan

_IMPORTED_LATE = (
    "faulthandler",
    "multiprocessing.popen_fork",
    "multiprocessing.queues",
    "multiprocessing.resource_tracker",
    "multiprocessing.synchronize",
    "numpy.random",
)
"""Modules that nothing imports until a rank, or a loader with workers, needs them. They start no thread."""


def rehearse() -> None:
    """Import them. If torch is imported, also take one batch through its loader and through the reader of batches."""
    for name in _IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "torch" not in sys.modules:
        return
    with contextlib.suppress(ImportError):  # since torch 2.6; a queue needs it for the first tensor
        importlib.import_module("torch.utils.serialization.config")
    import torch
    from torch.utils.data import DataLoader

    from ..sources.memory import Numbers
    from ..trial.batch import BatchReader

    torch.manual_seed(0)  # the first call reads source files; each rank sets its own seed
    with contextlib.suppress(BadbatchError, RuntimeError):  # this only saves some milliseconds: an error here must not stop the zygote
        reader = BatchReader(FaultPlan())
        for batch in DataLoader(Numbers(4), batch_size=2, shuffle=True):
            reader.read(batch)
