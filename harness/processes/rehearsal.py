"""Does once, in the zygote, what every rank would do again: late imports, and what libraries put aside when first used."""

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
"""Modules that nothing imports before a rank, or a loader with workers, needs them. They start no thread."""


def rehearse() -> None:
    """Import them; where torch is there, also take a batch through its loader and through the reader of batches."""
    for name in _IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "torch" not in sys.modules:
        return
    from torch.utils.data import DataLoader

    from ..sources.memory import Numbers
    from ..trial.batch import BatchReader

    with contextlib.suppress(BadbatchError, RuntimeError):  # it is worth some milliseconds, and not an error
        reader = BatchReader(FaultPlan())
        for batch in DataLoader(Numbers(4), batch_size=2, shuffle=True):
            reader.read(batch)
