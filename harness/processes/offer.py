"""Offers a trial's source to the loader: builds the job of one rank, and runs the consumer."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..contract.calling import Target, build
from ..contract.job import Job
from ..sources.base import Offer, find
from ..trial.batch import BatchReader
from ..trial.consumer import Consumer
from ..trial.event_log import Kind, Recorder
from ..trial.on_skip import OnSkip
from ..trial.phases import keeps_loader
from ..trial.snapshots import Album
from ..trial.spec import TrialSpec
from ..trial.states import States
from . import leaks
from .group import process_group


def run_rank(spec: TrialSpec, rank: int, folder: Path, target: Target, phases: range) -> None:
    """Run one rank of some phases of a trial in this process, to their end."""
    recorder = Recorder(folder, rank, phases[0])
    spec = spec.in_phase(phases[0])
    with process_group(spec, rank, folder, phases[0]) as lockstep:
        source = find(spec.source)
        batches = source.reader(spec, target.ids)
        work = _folder(folder / "work")
        jobs = {
            number: _job(spec, rank, recorder, batches, source.serve(spec, rank, recorder, folder), work, number)
            for number in phases
            if number == phases[0] or not keeps_loader(spec.phases, number - 1)
        }
        consumer = Consumer(spec, rank, recorder, batches, lockstep, leaks, Album(folder), States(folder, rank))
        consumer.run(lambda number: build(target, jobs.pop(number)), phases)  # only the loader keeps references to the job and the data set
    recorder(Kind.FINISHED)


def _job(
    spec: TrialSpec, rank: int, recorder: Recorder, batches: BatchReader, offer: Offer, work: Path, phase: int
) -> Job:
    root = offer.root
    return Job(
        source=spec.source,
        dataset=offer.dataset,
        root=root,
        samples=spec.samples,
        batch_size=spec.batch_size,
        num_workers=spec.topology.workers,
        rank=rank,
        world_size=spec.topology.ranks,
        shuffle=spec.shuffle,
        seed=spec.seed,
        epoch=spec.phases[phase].first_epoch,
        drop_last=spec.drop_last,
        timeout=spec.timeout_s,
        start_method=spec.topology.start_method,
        max_consecutive_skips=spec.max_consecutive_skips,
        on_skip=OnSkip(recorder, batches.names),
        decode=offer.decode,
        listing=offer.listing,
        persistent_workers=spec.topology.persistent,
        work_dir=work,
        cache_dir=None if root is None else _beside(root),
    )


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def _beside(root: Path) -> Path | None:
    """The folder for what is made from a corpus; None if nothing can be written beside it."""
    with contextlib.suppress(OSError):
        return _folder(root.with_name(f"{root.name}.made"))
    return None
