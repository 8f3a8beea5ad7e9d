"""Infers the parts of a contract that were not declared, from one probe; they are then required everywhere."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from ...harness.contract.choices import AfterError, Batches, OnDamage, Readers, ShortBatches, Tail
from ...harness.contract.job import Contract
from ...harness.errors import HarnessError, LoaderError
from ...harness.sources.base import find, truth
from ...harness.sources.truth import Owed, Walk
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History
from . import orders
from .accounting import account
from .doubts import disturbance, not_carried
from .expectation import expect
from .ledger import Epoch


def must_be_usable(history: History) -> None:
    """Refuse a loader that cannot be judged.

    Raises:
        LoaderError: in one line: it could not be built, cannot be iterated, or its batches cannot be read.
        HarnessError: the probe was disturbed: because of badbatch itself, or of the machine.
    """
    spec = history.spec
    if why := disturbance(history):
        raise HarnessError(f"the probe of {spec.loader} shows nothing: {why}")
    unreadable = history.of(Kind.UNREADABLE)
    if len(unreadable):
        raise LoaderError(f"{spec.loader}: {history.text(unreadable[0])}")
    if why := not_begun(history):
        raise LoaderError(f"{spec.loader}: {why}")


def not_begun(history: History) -> str:
    """Why there was no batch, if the loader cannot be built or iterated, or lacks what its source does not have; empty: there was."""
    spec = history.spec
    raised = history.of(Kind.RAISED)
    if not len(raised) or len(history.of(Kind.GOT)):
        return ""
    kind = history.text(raised[0], "type").removeprefix("builtins.")
    lines = history.text(raised[0]).strip().splitlines()
    said = f"raised {kind}: {lines[-1][:200] if lines else ''}"
    hint = _missing_input(history, raised[0])
    where = Where(int(raised[0]["flags"]))
    if where not in (Where.FACTORY, Where.ITER) and not hint:
        return ""
    what = {Where.FACTORY: "building it", Where.ITER: "iter() of it"}.get(where, "next()")
    return f"{what} with source {spec.source!r} {said}{hint}"


_NONE = re.compile(r"\bNone(Type)?\b")


_PARTS = {"dataset": ("root", "files", "imagefolder"), "root": ("dataset", "a data set", "map")}
"""From the part of the job that a source offers to the missing part: its name, what is read from it, and a source that
has it."""


def _missing_input(history: History, error: np.void) -> str:
    """What to declare, if a loader used the part of the job that its source does not have; empty: it is another error."""
    said = history.text(error)
    if re.search(r"\bnot Job\b|'Job'", said):
        return "; it is called with one argument, the job: its files are in job.root, its data set is job.dataset"
    if not _NONE.search(said):
        return ""
    source = history.spec.source
    part, reads, other = _PARTS[find(source).offers]
    if part not in history.text(error, "traceback"):
        return ""
    return (
        f"; job.{part} is None with source {source!r}: a loader that reads {reads} declares its sources, "
        f'like @loader(sources=("{other}",))'
    )


def infer(history: History, declared: Contract) -> Contract:
    """Complete a contract from a probe with one damaged sample, without workers, on one rank."""
    if why := not_carried(history):
        return _without_probe(history.spec.loader, declared, why)
    epoch = account(history, expect(history.spec, declared)).first
    found: dict[str, str] = {}
    on_damage = declared.on_damage
    if on_damage is None:
        on_damage = _on_damage(history, epoch)
        found["on_damage"] = on_damage
    if declared.after_error is None and on_damage == "raise":
        found["after_error"] = _after_error(history)
    if declared.batches is None and on_damage == "skip":
        found["batches"] = _batches(history)
    if declared.unshuffled is None and find(history.spec.source).offers == "root" and len(history.of(Kind.GOT)):
        found["unshuffled"] = "source" if all(number == 1 for number in _rows(history)) else "free"
    if declared.resume is None:
        found["resume"] = "exact" if np.any(history.of(Kind.BUILT)["flags"]) else "none"
    return _completed(declared, found)


def _without_probe(loader: str, declared: Contract, why: str) -> Contract:
    """The contract of a loader whose format cannot hold the damage of the probe: it has to be declared.

    Raises:
        LoaderError: it is not; names what is missing.
    """
    needed = {"raise": "after_error", "skip": "batches"}.get(declared.on_damage or "")
    missing = "on_damage" if declared.on_damage is None else needed if needed and getattr(declared, needed) is None else None
    if missing is not None:
        raise LoaderError(f"{loader} must declare {missing}: it cannot be inferred, since {why}")
    return declared


def infer_tail(history: History, contract: Contract) -> Contract:
    """Complete a contract from a probe without faults, on two ranks that do not divide the samples evenly."""
    if contract.tail is not None:
        return contract
    epoch = account(history, expect(history.spec, contract)).first
    came = int(epoch.arrivals.sum())
    extra = int(epoch.extra.sum())
    missing = int(np.count_nonzero(epoch.arrivals == 0))
    owed = history.spec.samples
    ranks = history.spec.topology.ranks
    tail: Tail = "exact"
    if extra and not missing and came == owed + -owed % ranks:
        tail = "pad"
    elif missing and not extra and came == owed - owed % ranks:
        tail = "drop"
    return _completed(contract, {"tail": tail})


def infer_workers(history: History, contract: Contract) -> Contract:
    """Complete a contract from a probe without faults, with workers whose shares are not whole numbers of batches.

    What such a probe cannot show stays undeclared: for a loader that fails with workers, or whose reads are not
    recorded.
    """
    if not len(history.of(Kind.GOT)) or not history.complete:
        return contract
    found: dict[str, str] = {}
    if contract.short_batches is None and history.spec.topology.workers > 1:
        found["short_batches"] = _short_batches(history)
    if contract.readers is None and (readers := _readers(history)):
        found["readers"] = readers
    if contract.unshuffled is None or (contract.unshuffled == "source" and "unshuffled" in contract.inferred):
        stream = find(history.spec.source).offers == "root" or truth(history.spec).walk is not Walk.INDEX
        if stream and 1 < max(_rows(history)) <= history.spec.topology.workers:
            found["unshuffled"] = "per-worker"
    return _completed(contract, found)


def _rows(history: History) -> list[int]:
    """For each rank, into how many rows in the order of the source its samples can be split."""
    return [orders.rows(orders.places(history, 0, rank)) for rank in range(history.spec.topology.ranks)]


def _short_batches(history: History) -> ShortBatches:
    """Whether each worker ends with a short batch of its own, and all other batches are full."""
    size, workers = history.spec.batch_size, history.spec.topology.workers
    seen = False
    for rank in range(history.spec.topology.ranks):
        sizes = history.of(Kind.GOT, rank=rank)["sample"]
        short = int(np.count_nonzero(sizes < size))
        if np.any(sizes > size) or short > workers or _owners_of_short(history, rank, size) < short:
            return "last"
        seen |= short > 1
    return "per-worker" if seen else "last"


def _owners_of_short(history: History, rank: int, size: int) -> int:
    """How many processes or threads read the samples of the short batches, each as its last.

    If reads are not recorded, the number of short batches.
    """
    reads, arrived = history.of(Kind.READ, rank=rank), history.of(Kind.ARRIVED, rank=rank)
    got = history.of(Kind.GOT, rank=rank)
    short = got[got["sample"] < size]["aux"]
    if not truth(history.spec).reads_recorded:
        return len(short)
    owners = set()
    for step in short:
        samples = arrived["sample"][arrived["aux"] == step]
        mine = reads[np.isin(reads["sample"], samples)]
        who = set(zip(mine["pid"].tolist(), mine["aux"].tolist(), strict=True))
        if len(who) != 1:
            return 0
        pid, thread = who.pop()
        order = reads["sample"][(reads["pid"] == pid) & (reads["aux"] == thread)]
        if np.isin(order[-len(samples) :], samples).all():
            owners.add((pid, thread))
    return len(owners)


def _readers(history: History) -> Readers | None:
    """Who reads most of the samples: other processes, threads of the consumer's process, or its main thread."""
    reads = history.of(Kind.READ)
    if not len(reads):
        return None
    consumers = {int(event["rank"]): int(event["pid"]) for event in history.of(Kind.ASK)}
    own = np.array([consumers.get(int(rank)) == pid for rank, pid in zip(reads["rank"], reads["pid"].tolist(), strict=True)])
    in_threads = own & (reads["flags"] == 1)
    counts: dict[Readers, int] = {
        "processes": int(np.count_nonzero(~own)),
        "threads": int(np.count_nonzero(in_threads)),
        "consumer": int(np.count_nonzero(own & ~in_threads)),
    }
    return max(counts, key=lambda readers: counts[readers])


def _completed(contract: Contract, found: dict[str, str]) -> Contract:
    return dataclasses.replace(contract, **found, inferred=tuple(dict.fromkeys((*contract.inferred, *found))))  # type: ignore[arg-type]


def _on_damage(history: History, epoch: Epoch) -> OnDamage:
    damaged = np.flatnonzero(truth(history.spec).owed == Owed.DAMAGED).tolist()
    if epoch.unnamed or np.any(epoch.marked[damaged] > 0):
        return "mark"
    if sum(epoch.errors):
        return "raise"
    if not epoch.arrivals[damaged].any():
        return "substitute" if epoch.extra.any() else "skip"
    return "raise"  # it delivered damaged samples: no better policy can be inferred


def _after_error(history: History) -> AfterError:
    raised = history.of(Kind.RAISED)
    got = history.of(Kind.GOT)
    if not len(raised):
        return "continue"  # no error was raised, so nothing is known about a stop
    return "continue" if np.any(got["time"] > raised[0]["time"]) else "stop"


def _batches(history: History) -> Batches:
    sizes = history.of(Kind.GOT)["sample"][:-1]
    return "short" if np.any(sizes < history.spec.batch_size) else "full"
