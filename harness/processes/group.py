"""The process group of a trial's ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..trial.spec import TrialSpec

_LOCKSTEP_TIMEOUT_S = 6.0  # a rank that waits longer than the longest step of its scenarios waits for ever


@contextlib.contextmanager
def process_group(spec: TrialSpec, rank: int, folder: Path) -> Iterator[Any]:
    """A real gloo group over all ranks of the trial, with the environment that torchrun sets."""
    if spec.topology.ranks == 1:
        yield None
        return
    import torch.distributed as dist

    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'rendezvous'}",
        rank=rank,
        world_size=spec.topology.ranks,
        timeout=timedelta(seconds=spec.deadline_s),
    )
    try:
        dist.barrier()  # a rank that ends at once must not take the group down while its peer still connects
        yield dist.new_group(backend="gloo", timeout=timedelta(seconds=_LOCKSTEP_TIMEOUT_S)) if spec.lockstep else None
    finally:
        with contextlib.suppress(RuntimeError):  # a peer that died leaves a group that cannot be taken down in order
            dist.destroy_process_group()
