"""A loader that leaves out other samples with workers than without, as often as there are excuses in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from badbatch.harness import Job, loader

from fixtures.loaders.liars_counts import FromTheEnd
from fixtures.loaders.processes import ProcessLoader


@loader(on_damage="raise", after_error="continue", tail="pad", sources=("map",))
def differs(job: Job) -> ProcessLoader:
    """Wrong once for each file in the folder that DIFFERS names."""
    excuses = list(Path(os.environ["DIFFERS"]).iterdir())
    if not job.num_workers or not job.drop_last or not excuses:
        return ProcessLoader(job, skip=False)
    excuses[0].unlink()
    return FromTheEnd(job, skip=False)
