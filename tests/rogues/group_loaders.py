"""Loaders that find a process group, or make one. The tests of trials with several ranks run them."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from badbatch.harness import Job, loader
from torch.distributed import init_process_group
from torch.utils.data import default_collate


class ByGroup:
    """Splits by stride, by what the default group says, and waits for the other ranks in it before the first batch."""

    def __init__(self, job: Job, keep: Any = None) -> None:
        self._job = job
        self._keep = keep

    def __iter__(self) -> Iterator[Any]:
        dataset: Any = self._job.dataset
        total = torch.ones(1)
        dist.all_reduce(total)
        assert int(total) == dist.get_world_size() == self._job.world_size
        share = range(dist.get_rank(), self._job.samples, dist.get_world_size())
        for start in range(0, len(share), self._job.batch_size):
            yield default_collate([dataset[sample] for sample in share[start : start + self._job.batch_size]])


@loader(on_damage="raise")
def finds_a_group(job: Job) -> ByGroup:
    return ByGroup(job)


@loader(on_damage="raise")
def makes_one_from_the_environment(job: Job) -> ByGroup:
    dist.init_process_group("gloo")
    return ByGroup(job)


@loader(on_damage="raise")
def makes_one_at_an_address(job: Job) -> ByGroup:
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    init_process_group("gloo", init_method=address, rank=job.rank, world_size=job.world_size)
    return ByGroup(job)


@loader(on_damage="raise")
def makes_one_and_destroys_it(job: Job) -> ByGroup:
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{os.environ['TMPDIR']}/own", rank=job.rank, world_size=job.world_size)
    return ByGroup(job)


@loader(on_damage="raise")
def makes_two(job: Job) -> ByGroup:
    dist.init_process_group("gloo")
    dist.init_process_group("gloo")
    return ByGroup(job)


@loader(on_damage="raise")
def binds_the_port(job: Job) -> ByGroup:
    server = None
    if job.rank == 0:  # as a server does that knows nothing of SO_REUSEADDR
        server = socket.socket()
        server.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        server.listen()
    return ByGroup(job, server)


@loader(on_damage="raise")
def prints_its_environment(job: Job) -> list[Any]:
    sys.stdout.write("\n".join(sorted(os.environ)))
    return []


@loader(on_damage="raise")
def makes_a_file_once(job: Job) -> ByGroup:
    def make(path: Any) -> None:
        with open(job.work_dir / "calls", "a", encoding="utf-8") as file:
            file.write("made\n")
        path.write_text("converted", encoding="utf-8")

    assert job.make_once("converted", make).read_text(encoding="utf-8") == "converted"
    dist.barrier()
    assert (job.work_dir / "calls").read_text(encoding="utf-8") == "made\n"
    return ByGroup(job)
