"""A loader."""

from __future__ import annotations

from typing import Any

from badbatch.harness import Job, loader


@loader(on_damage="raise", after_error="continue")
def sunshine(job: Job) -> Any:
    """Torch's loader."""
    from torch.utils.data import DataLoader

    return DataLoader(job.dataset, batch_size=job.batch_size, num_workers=job.num_workers)
