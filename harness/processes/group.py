"""The process group of a trial's ranks: the default group that a loader finds, and badbatch's own for the lock step."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..trial.spec import TrialSpec

_LOCKSTEP_TIMEOUT_S = 6.0  # seconds: a rank that waits longer than the longest step of its scenarios will wait for ever


class LockStep:
    """One collective operation in each step, as in distributed data parallel training, in a group that no loader can reach."""

    def __init__(self, rank: int, ranks: int, folder: Path, phase: int) -> None:
        import torch.distributed

        dist: Any = torch.distributed  # its stubs do not declare these names
        store = dist.FileStore(str(folder / f"rendezvous-steps-{phase}"), ranks)
        self._group = dist.ProcessGroupGloo(store, rank, ranks, timedelta(seconds=_LOCKSTEP_TIMEOUT_S))

    def step(self) -> None:
        """Wait for the other ranks.

        Raises:
            RuntimeError: one of them did not arrive in time, or has ended.
        """
        import torch

        self._group.allreduce([torch.ones(1)]).wait()


@contextlib.contextmanager
def process_group(spec: TrialSpec, rank: int, folder: Path, phase: int) -> Iterator[LockStep | None]:
    """Make a real gloo group over all ranks of a phase the default group, until the loader makes its own."""
    ranks = spec.topology.ranks
    if ranks == 1:
        yield None
        return
    import torch.distributed as dist

    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / f'rendezvous-{phase}'}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=spec.deadline_s),
    )
    _Standing.group = dist.group.WORLD
    try:
        dist.barrier()  # a rank that ends at once must not destroy the group while its peer still connects
        yield LockStep(rank, ranks, folder, phase) if spec.lockstep else None
    finally:
        with contextlib.suppress(RuntimeError):  # if a peer died, the group cannot be destroyed in the normal way
            if dist.is_initialized():
                dist.destroy_process_group()


class _Standing:
    """The default group that was made here; None: there is none, or the loader's group has replaced it."""

    group: Any = None


def ranks_can_meet() -> bool:
    """Whether torch, whose group several ranks need, is installed; it is not imported."""
    return importlib.util.find_spec("torch") is not None


def let_loaders_make_groups() -> None:
    """Make ``init_process_group`` replace badbatch's default group; otherwise it would refuse to make a second one.

    Call this before the loader's module is imported, which may import the function by its name.
    """
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    if not dist.is_available() or hasattr(dist.init_process_group, "__wrapped_by_badbatch__"):
        return
    make = dist.init_process_group

    @functools.wraps(make)
    def init_process_group(*args: Any, **options: Any) -> None:
        if _Standing.group is not None and dist.is_initialized() and dist.group.WORLD is _Standing.group:
            _Standing.group = None
            dist.destroy_process_group()
        make(*args, **options)

    init_process_group.__wrapped_by_badbatch__ = True  # type: ignore[attr-defined]
    dist.init_process_group = init_process_group
    distributed_c10d.init_process_group = init_process_group
