"""Diagnoses of how the samples are split between ranks and workers, and batched there."""

from __future__ import annotations

import numpy as np

from ...harness.trial.event_log import Kind
from ...harness.trial.history import Events
from ..checks.base import count, spans, was
from .base import diagnosis
from .case import Case, Ids

_MOST = 0.5  # of the samples: accidental sharing (a retry, padding) is far less, a missing split shares all


def _shared(events: Events, owner: str, samples: int) -> Ids:
    """The samples that two or more owners have."""
    owners = np.zeros(samples, np.int64)
    for one in np.unique(events[owner]):
        its = np.zeros(samples, np.bool_)
        its[events[events[owner] == one]["sample"]] = True
        owners += its
    found: Ids = np.flatnonzero(owners > 1)
    return found


def _in_order(events: Events) -> bool:
    """Whether each process read its samples in the order of their ids."""
    return all(np.all(np.diff(events[events["pid"] == pid]["sample"]) > 0) for pid in np.unique(events["pid"]))


@diagnosis(
    "shuffled-differently",
    cause="Each rank, or each worker, draws its own permutation and takes its share of it.",
    fix="Draw one permutation from the job's seed and epoch, the same everywhere, and split that.",
    explains=("no-duplicates", "no-lost-batches", "fresh-epoch"),
    before=("rank-and-worker-composed-wrongly",),
)
def shuffled_differently(case: Case) -> str | None:
    twice = np.flatnonzero(case.epoch.arrivals > 1)
    never = np.flatnonzero(case.epoch.arrivals == 0)
    if not case.spec.shuffle or len(case.faults) or not len(twice) or not len(never) or _in_order(case.reads):
        return None
    if len(twice) > _MOST * case.spec.samples:
        return None
    by_rank = case.ranks > 1 and len(_shared(case.arrived, "rank", case.spec.samples))
    who = "rank" if by_rank else "worker"
    return f"{count(len(twice), 'sample')} came twice and {len(never)} never: each {who} drew a permutation of its own"


@diagnosis(
    "not-split-by-worker",
    cause="Each worker reads the whole share of its rank, instead of its part of it.",
    fix="Split what is iterated by the worker's number, as torch.utils.data.get_worker_info() gives it.",
    explains=("no-duplicates", "fresh-epoch", "finite-epoch", "honest-length"),
    before=("not-split-by-rank",),
)
def not_split_by_worker(case: Case) -> str | None:
    for rank in range(case.ranks):
        mine = case.reads[case.reads["rank"] == rank]
        pids = np.unique(mine["pid"])
        shared = _shared(mine, "pid", case.spec.samples)
        if len(pids) < 2 or not len(shared) or len(shared) < _MOST * np.count_nonzero(case.mask(mine["sample"])):
            continue
        # Workers that pass the samples of others, or try a damaged one again, read the same samples and deliver each once.
        came = case.arrived[case.arrived["rank"] == rank]["sample"]
        if not len(came) or np.count_nonzero(np.bincount(came, minlength=case.spec.samples) > 1) < _MOST * len(np.unique(came)):
            continue
        also = ""
        if len(_shared(case.reads, "rank", case.spec.samples)) > _MOST * case.spec.samples:
            also = ", and so did those of the other ranks"
        of_rank = f" of rank {rank}" if case.ranks > 1 else ""
        return f"{len(pids)} workers{of_rank} read the same {count(len(shared), 'sample')}{also}"
    return None


@diagnosis(
    "not-split-by-rank",
    cause="Each rank reads the whole source, instead of its part of it.",
    fix="Split what is iterated by job.rank and job.world_size before the workers split it.",
    explains=("no-duplicates", "fresh-epoch", "finite-epoch", "honest-length"),
    before=("rank-and-worker-composed-wrongly",),
)
def not_split_by_rank(case: Case) -> str | None:
    if case.ranks < 2 or not len(case.arrived):
        return None
    shared = _shared(case.arrived, "rank", case.spec.samples)
    came = len(np.unique(case.arrived["sample"]))
    if len(shared) <= case.expected.pad_budget or len(shared) < _MOST * came:
        return None
    return f"{len(shared)} of {count(came, 'sample')} arrived on more than one of {case.ranks} ranks"


@diagnosis(
    "rank-and-worker-composed-wrongly",
    cause="The shares of (rank, worker) pairs overlap and leave a gap: the two numbers are not composed into one.",
    fix="Give each pair the share number rank * workers + worker of world_size * workers shares.",
    explains=("no-duplicates", "no-lost-batches", "fresh-epoch", "ranks-in-step"),
    before=("drawn-with-replacement",),
)
def rank_and_worker_composed_wrongly(case: Case) -> str | None:
    if case.ranks < 2 or case.workers < 2 or len(case.faults) or not len(case.reads):
        return None
    twice = _shared(case.reads, "pid", case.spec.samples)
    never = int(np.count_nonzero(~case.read))
    if len(twice) and never > case.expected.drop_budget:
        return (
            f"{count(len(twice), 'sample')} {was(len(twice))} read by two processes or more, and {never} by none, "
            f"with {case.ranks} ranks of {case.workers} workers"
        )
    idle = [rank for rank in range(case.ranks) if not np.any(case.reads["rank"] == rank)]
    if idle and len(idle) < case.ranks <= case.spec.samples:
        return f"rank {idle[0]} read nothing, and the others read {np.count_nonzero(case.read)} samples"
    return None


@diagnosis(
    "drawn-with-replacement",
    cause="The sampler draws with replacement or by weight, and the loader does not say so.",
    fix="Declare @loader(replacement=True); the number of samples is still owed.",
    explains=("no-duplicates", "fresh-epoch"),
)
def drawn_with_replacement(case: Case) -> str | None:
    twice = int(np.count_nonzero(case.epoch.arrivals > 1))
    never = int(np.count_nonzero(case.epoch.arrivals == 0))
    came = int(case.epoch.arrivals.sum())
    if not twice or not never or len(case.faults) or not 0 <= came - case.spec.samples <= case.ranks or _in_order(case.reads):
        return None
    for pid in np.unique(case.reads["pid"]):
        mine = case.reads[case.reads["pid"] == pid]["sample"]
        if len(np.unique(mine)) < len(mine):
            return (
                f"{count(came, 'sample')} came, as many as the source holds, but {twice} of them more than once and {never} never, and "
                "one process read some of them twice"
            )
    return None


def _tails(case: Case, samples: Ids) -> dict[int, Ids]:
    """From pid to those of ``samples`` that it read last; empty unless all of them were the last of some process."""
    tails: dict[int, Ids] = {}
    found = 0
    wanted = case.mask(samples)
    for pid in np.unique(case.reads[wanted[case.reads["sample"]]]["pid"]):
        order = case.reads[case.reads["pid"] == pid]["sample"]
        among = wanted[order]
        length = int(np.argmin(among[::-1])) if not among.all() else len(among)
        if length != np.count_nonzero(among):
            return {}
        tails[int(pid)] = order[len(order) - length :]
        found += length
    return tails if found == len(samples) else {}


@diagnosis(
    "drop-last-per-worker",
    cause="drop_last is applied to each worker's samples, so that each drops a partial batch of its own.",
    fix="Collect the samples of all workers before they are batched, or split the batches and not the samples; where it is meant, "
    'declare @loader(short_batches="per-worker").',
    explains=("no-lost-batches", "honest-length", "fresh-epoch"),
    before=("batched-per-worker",),
    of_workers=True,
)
def drop_last_per_worker(case: Case) -> str | None:
    missing = np.flatnonzero(case.epoch.arrivals == 0)
    if not case.spec.drop_last or not len(missing) or len(case.faults):
        return None
    allowed = case.expected.drop_budget
    if not case.read[missing].any():
        most = case.ranks * case.workers * (case.spec.batch_size - 1)
        if case.workers < 2 or not allowed < len(missing) <= most:
            return None
        return f"{count(len(missing), 'sample')} {was(len(missing))} left unread by {case.workers} workers a rank, where {allowed} may go"
    tails = _tails(case, missing)
    if len(tails) < 2 or any(len(tail) >= case.spec.batch_size for tail in tails.values()):
        return None
    parts = " + ".join(str(len(tail)) for tail in tails.values())
    return f"{len(tails)} workers dropped {parts} samples, each its own last partial batch, where {allowed} may go"


@diagnosis(
    "batched-per-worker",
    cause="Each worker makes batches of its own samples, so that each ends with a short one.",
    fix="Collect the samples of all workers before they are batched, or split the batches and not the samples; where it is meant, "
    'declare @loader(short_batches="per-worker").',
    explains=("full-batches", "honest-length"),
    before=("false-end",),
    of_workers=True,
)
def batched_per_worker(case: Case) -> str | None:
    arrived = case.history.of(Kind.ARRIVED, epoch=case.epoch.number)
    for rank in range(case.ranks):
        got = case.history.of(Kind.GOT, epoch=case.epoch.number, rank=rank)
        short = got[(got["sample"] > 0) & (got["sample"] < case.spec.batch_size)]
        mine = case.reads[case.reads["rank"] == rank]
        if len(short) > len(np.unique(mine["pid"])):  # more than one from each process
            continue
        owners = []
        for batch in short:
            samples = arrived[(arrived["rank"] == rank) & (arrived["aux"] == batch["aux"])]["sample"]
            readers = np.unique(mine[np.isin(mine["sample"], samples)]["pid"])
            if len(readers) != 1 or case.consumers.get(rank) == readers[0]:
                break
            last = mine[mine["pid"] == readers[0]]["sample"]
            if not np.any(np.isin(last[-case.spec.batch_size :], samples)):
                break
            owners.append(int(readers[0]))
        else:
            if len(owners) >= 2 and len(set(owners)) == len(owners):
                of_rank = f" of rank {rank}" if case.ranks > 1 else ""
                sizes = " and ".join(str(int(size)) for size in short["sample"])
                return f"{len(owners)} workers{of_rank} ended with short batches of their own, of {sizes} samples"
    return None


@diagnosis(
    "length-of-the-whole-set",
    cause="len() counts the batches of all ranks, but each rank delivers only its own.",
    fix="Let len() count the batches of this rank's share.",
    explains=("honest-length",),
    before=("length-in-samples",),
)
def length_of_the_whole_set(case: Case) -> str | None:
    said = case.history.of(Kind.LENGTH)
    whole = {case.spec.samples // case.spec.batch_size, -(-case.spec.samples // case.spec.batch_size)}
    came = case.epoch.batches
    if case.ranks < 2 or not len(said) or int(said[0]["sample"]) not in whole or not sum(came):
        return None
    if max(came) > -(-int(said[0]["sample"]) // case.ranks) + 1:
        return None
    return f"len() is {int(said[0]['sample'])} on every rank, and {' + '.join(map(str, came))} batches came on {case.ranks} ranks"


@diagnosis(
    "length-in-samples",
    cause="len() counts samples, not batches.",
    fix="Let len() be the number of samples divided by the batch size, rounded as drop_last says.",
    explains=("honest-length",),
)
def length_in_samples(case: Case) -> str | None:
    said = case.history.of(Kind.LENGTH)
    came = case.epoch.batches[0]
    share = -(-case.spec.samples // case.ranks)
    if not len(said) or case.spec.batch_size == 1 or int(said[0]["sample"]) not in (case.spec.samples, share):
        return None
    return f"len() is {int(said[0]['sample'])}, the number of samples, and {count(came, 'batch')} came" if came < share else None


@diagnosis(
    "damage-shrinks-one-rank",
    cause="Skipped samples shorten the epoch of the rank that owns them, and of no other rank.",
    fix="Refill the batches of that rank, or agree on the number of steps over all ranks (one all_reduce before the epoch).",
    explains=("ranks-in-step",),
)
def damage_shrinks_one_rank(case: Case) -> str | None:
    batches = np.array(case.epoch.batches)
    least = np.flatnonzero(batches == batches.min())
    struck = np.unique(case.faults["rank"])
    if case.ranks < 2 or batches.min() == batches.max() or any(case.epoch.errors) or not np.isin(least, struck).all():
        return None
    if case.lost.any():  # the rank lacks more than its damaged samples
        return None
    rank = int(least[0])
    bad = np.unique(case.faults[case.faults["rank"] == rank]["sample"])
    return (
        f"rank {rank} had {count(len(bad), 'damaged sample')} ({spans(bad)}) and made "
        f"{count(int(batches.max() - batches.min()), 'step')} fewer"
    )


@diagnosis(
    "remainder-not-evened-out",
    cause="The ranks do not divide the samples, and the remainder makes a batch more on some of them.",
    fix="Pad or drop the remainder, as torch.utils.data.DistributedSampler does, and declare it with tail=….",
    explains=("ranks-in-step",),
)
def remainder_not_evened_out(case: Case) -> str | None:
    batches = np.array(case.epoch.batches)
    arrived = case.history.of(Kind.ARRIVED, epoch=case.epoch.number)
    shares = np.bincount(arrived["rank"], minlength=case.ranks)
    if case.ranks < 2 or len(case.faults) or batches.max() - batches.min() != 1 or case.spec.samples % case.ranks == 0:
        return None
    return (
        f"{case.spec.samples} samples on {case.ranks} ranks are {' and '.join(map(str, shares.tolist()))}, "
        f"in {' and '.join(map(str, batches.tolist()))} batches"
    )
