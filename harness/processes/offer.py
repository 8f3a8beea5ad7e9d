"""Offers a trial's source to the loader: builds the job of one rank, and has it consumed."""

from __future__ import annotations

from pathlib import Path

from ..contract.calling import Target, build
from ..contract.job import MEMORY_SOURCES, Job
from ..instrumentation.decoder import Decode
from ..sources.memory import Reader, memory_source
from ..trial.batch import BatchReader
from ..trial.consumer import Consumer
from ..trial.event_log import Kind, Recorder
from ..trial.on_skip import OnSkip
from ..trial.spec import TrialSpec
from ..trial.stored_batch import StoredBatchReader
from . import leaks
from .group import process_group


def run_rank(spec: TrialSpec, rank: int, folder: Path, target: Target) -> None:
    """Run one rank of a trial in this process, to its end."""
    recorder = Recorder(folder, rank)
    with process_group(spec, rank, folder) as group:
        if spec.source in MEMORY_SOURCES:
            reader = Reader(spec.plan, recorder, folder)
            dataset = memory_source(spec.source, spec.samples, reader, rank, spec.topology.ranks)
            root = None
            decode: Decode | None = None
            batches, on_skip = BatchReader(spec.plan, target.ids), OnSkip(recorder)
        else:
            dataset, root = None, Path(spec.root or "")
            decode = Decode(lazy=spec.lazy_decode)
            batches = stored = StoredBatchReader(root, spec.source, spec.plan, target.ids)
            on_skip = OnSkip(recorder, stored.names)
        job = Job(
            source=spec.source,
            dataset=dataset,
            root=root,
            samples=spec.samples,
            batch_size=spec.batch_size,
            num_workers=spec.topology.workers,
            rank=rank,
            world_size=spec.topology.ranks,
            shuffle=spec.shuffle,
            seed=spec.seed,
            epoch=0,
            drop_last=spec.drop_last,
            timeout=spec.timeout_s,
            start_method=spec.topology.start_method,
            max_consecutive_skips=spec.max_consecutive_skips,
            on_skip=on_skip,
            decode=decode,
            persistent_workers=spec.topology.persistent,
        )
        del dataset
        consumer = Consumer(spec, rank, recorder, batches, group, leaks)
        box = [job]
        del job
        consumer.run(lambda: build(target, box.pop()))
    recorder(Kind.FINISHED)
