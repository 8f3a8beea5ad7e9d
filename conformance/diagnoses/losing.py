"""Diagnoses of samples that are lost: with a worker, with its batch, or because the epoch ended too early."""

from __future__ import annotations

import re

import numpy as np

from ...harness.faults import Effect
from ...harness.trial.event_log import Kind
from ...harness.trial.history import Events
from ..checks.base import count, spans, was
from ..judging.ledger import Stop
from ..judging.raised import quoted
from .base import diagnosis
from .case import READS_WRONGLY, Case, Mask

_FEEDER = re.compile(r"multiprocessing.queues\.py\", line \d+, in _feed\n(?:[ \t].*\n|\n)*(\S.*)")
"""The traceback of a thread that feeds a queue, with the error at its end."""
_THREAD_DIED = re.compile(r"Exception in thread .*\n(?:[ \t].*\n|Traceback .*\n|\n)*(\S.*)")
"""What threading.excepthook prints, with the error at its end."""

_MOST_OF_IT = 0.75  # of a rank's samples: the share of one of two workers is half of them

_LOSSES = ("no-lost-batches", "contract-kept", "finite-epoch", "full-batches", "ranks-in-step", "crash-surfaces", "fresh-epoch")


def _after(events: Events, moment: np.void) -> Events:
    found: Events = events[(events["rank"] == moment["rank"]) & (events["time"] > moment["time"])]
    return found


def _beyond_its_batch(case: Case) -> bool:
    """Whether more samples are lost than those that share a batch with a damaged one."""
    struck = case.mask(case.faults["sample"])
    return _number(case.gone & ~struck) > _number(struck) * (case.spec.batch_size - 1)


def _number(which: Mask) -> int:
    return int(np.count_nonzero(which))


@diagnosis(
    "dead-worker-takes-its-queue",
    cause="The batches that were given to a worker are lost when it dies: no other worker takes them over.",
    fix="Remember which batches each worker was given, and give those of a dead one to another.",
    explains=_LOSSES,
    before=("batch-lost-worker-alive",),
    of_workers=True,
)
def dead_worker_takes_its_queue(case: Case) -> str | None:
    for death in case.struck(Effect.CRASH):
        rank = int(death["rank"])
        if not case.in_worker(np.array([death]))[0] or not case.lost.any() or case.waits_for_ever(rank):
            continue
        if not len(_after(case.raised(), death)) or case.ends_with is not None:
            continue
        lost, unread = _number(case.lost), _number(case.lost & ~case.read)
        how = f", {unread} of them never read" if 0 < unread < lost else ", never read" if unread else ", though read"
        return (
            f"{case.reader(death)} died in sample {death['sample']}, and {count(lost, 'good sample')} "
            f"({spans(np.flatnonzero(case.lost))}) never came{how}"
        )
    return None


@diagnosis(
    "batch-lost-with-the-news",
    cause="A batch of a living worker is lost when another worker dies: the error that reports the death is raised "
    "while the batch is being received, or the dead worker holds the lock of the queue.",
    fix="Only note the death in the signal handler and raise between two batches, give each worker a queue of its own, and "
    "ask again for what was lost.",
    explains=("finite-epoch", "crash-surfaces", "correct-timeout"),
    before=("waits-for-dead-worker",),
)
def batch_lost_with_the_news(case: Case) -> str | None:
    for death in case.struck(Effect.CRASH):
        rank = int(death["rank"])
        if not case.in_worker(np.array([death]))[0] or not case.waits_for_ever(rank):
            continue
        living = case.reads[(case.reads["rank"] == rank) & (case.reads["pid"] != death["pid"])]
        readers = living[(case.read_whole & (case.epoch.arrivals == 0))[living["sample"]]]
        if not len(readers) or not case.read_whole[living["sample"]].all():
            continue
        return (
            f"{case.reader(death)} died in sample {death['sample']}, and call {case.epoch.calls[rank]} of next() waits, though "
            f"{case.reader(readers[0])} lives and had read {count(_number(case.mask(readers['sample'])), 'sample')} more"
        )
    return None


@diagnosis(
    "waits-for-dead-worker",
    cause="The consumer waits for a batch that a dead worker was to send.",
    fix="Wait for the workers' sentinels together with the queue, and raise, or give the batch to another worker.",
    explains=("finite-epoch", "crash-surfaces", "correct-timeout"),
    before=("batch-lost-worker-alive",),
)
def waits_for_dead_worker(case: Case) -> str | None:
    for death in case.struck(Effect.CRASH):
        if case.in_worker(np.array([death]))[0] and case.waits_for_ever(int(death["rank"])):
            told = len(_after(case.raised(), death))
            after = f", after {count(told, 'error')} had told of it" if told else ""
            calls = case.epoch.calls[int(death["rank"])]
            return f"{case.reader(death)} died in sample {death['sample']}, and call {calls} of next() waits for it{after}"
    return None


@diagnosis(
    "death-taken-for-end",
    cause="A worker that died is treated as one that has finished its share.",
    fix="Let each worker report that it is done, and raise where one ends without that report, with any exit code.",
    explains=_LOSSES,
    before=("dead-worker-takes-its-queue",),
)
def death_taken_for_end(case: Case) -> str | None:
    for death in case.struck(Effect.CRASH):
        rank = int(death["rank"])
        if not case.in_worker(np.array([death]))[0] or case.epoch.stops[rank] is not Stop.END:
            continue
        if len(_after(case.raised(), death)) or len(_after(case.history.of(Kind.SKIPPED), death)):
            continue
        return f"{case.reader(death)} died in sample {death['sample']}, and the epoch ended without an error"
    return None


@diagnosis(
    "batch-unpicklable",
    cause="A batch that cannot be pickled is lost in the thread that feeds the queue, where nobody sees the error.",
    fix="Pickle the batch in the worker's own loop, inside its try, and send bytes; the error is then passed on like any other.",
    explains=_LOSSES,
    before=("error-swallowed-by-thread", "not-split-by-worker", "batched-per-worker"),
)
def batch_unpicklable(case: Case) -> str | None:
    fed = _FEEDER.search(case.history.output)
    said = f": {fed[1].strip()[:120]}" if fed else ""
    struck = case.struck(Effect.UNPICKLABLE)
    suspects = struck[case.in_worker(struck)] if len(struck) else struck
    for fault in suspects:
        rank = int(fault["rank"])
        if case.epoch.arrivals[fault["sample"]] or len(_after(case.raised(rank), fault)):
            continue
        if not fed and not case.waits_for_ever(rank):
            continue  # nothing says that it was the pickling in a thread
        return f"sample {fault['sample']} was read in {case.reader(fault)}, and its batch was lost when it was pickled{said}"
    kept = _number(case.read_whole & (case.epoch.arrivals == 0))
    if not len(struck) and kept and fed:
        return f"{count(kept, 'sample')} {was(kept)} read whole, and lost when the batch was pickled{said}"
    return None


def _reads_ahead(case: Case, rank: int) -> bool:
    """Whether the consumer's own process read while the consumer was not asking, so that it must have a reading thread."""
    mine = case.reads[case.reads["pid"] == case.consumers.get(rank, 0)]
    calls = case.history.of(Kind.ASK, Kind.GOT, Kind.RAISED, Kind.END, epoch=case.epoch.number, rank=rank)
    if not len(calls) or not len(mine):
        return False
    before = np.searchsorted(calls["time"], mine["time"]) - 1
    outside = (before < 0) | (calls["kind"][np.maximum(before, 0)] != Kind.ASK)
    return bool(outside.any())


@diagnosis(
    "error-swallowed-by-thread",
    cause="A helper thread that reads ahead died of the error, and the consumer was not informed.",
    fix="Catch the error in the thread, put it in the queue, and raise it in next().",
    explains=_LOSSES,
    before=("false-end",),
)
def error_swallowed_by_thread(case: Case) -> str | None:
    died = _THREAD_DIED.search(case.history.output)
    said = f" ({died[1].strip()[:120]})" if died else ""
    for fault in case.struck(*READS_WRONGLY):
        rank = int(fault["rank"])
        if case.consumers.get(rank) != int(fault["pid"]) or len(_after(case.raised(rank), fault)):
            continue
        if not case.missing[fault["sample"]] or case.epoch.stops[rank] not in (Stop.END, Stop.CUT):
            continue
        if not died and (case.goes_on_reading(fault) or not (case.in_thread(fault) or _reads_ahead(case, rank))):
            continue  # the consumer's own thread may have read it
        waits = case.waits_for_ever(rank)
        if waits or _beyond_its_batch(case):
            then = "the consumer waits for it" if waits else "the epoch ended as if it were done"
            return f"the thread that reads ahead died after it had read sample {fault['sample']}{said}, and {then}"
    return None


@diagnosis(
    "worker-left-at-first-error",
    cause="A worker leaves its loop at its first error, and the rest of its share is lost.",
    fix="Catch the error inside the loop, pass it on as that batch's result, and go on with the next batch.",
    explains=_LOSSES,
    before=("false-end",),
    of_workers=True,
)
def worker_left_at_first_error(case: Case) -> str | None:
    faults = case.struck(*READS_WRONGLY)
    unread = _number(case.gone & ~case.read)
    if not case.workers or not unread:
        return None
    for fault in faults:
        rank = int(fault["rank"])
        own = case.consumers.get(rank) == int(fault["pid"])
        others = case.reads[(case.reads["rank"] == rank) & (case.reads["time"] > fault["time"])]
        told = _after(case.raised(rank), fault)
        if not len(told) or (not own and case.goes_on_reading(fault)):
            continue
        went_on = len(others) or np.any(case.history.of(Kind.GOT, epoch=case.epoch.number, rank=rank)["time"] > told[0]["time"])
        if went_on and _beyond_its_batch(case):
            who = "a worker" if own else case.reader(fault)
            return (
                f"{who} left its loop at its first error, in sample {fault['sample']}: "
                f"{count(unread, 'good sample' if case.lost.any() else 'sample')} {was(unread)} never read after it"
            )
    return None


@diagnosis(
    "false-end",
    cause="The fault looks like the end: a generator that raised is finished, or a read raised StopIteration.",
    fix="Read outside of generators that must go on, and turn a StopIteration of the data set into an error.",
    explains=_LOSSES,
    before=("ends-with-error",),
)
def false_end(case: Case) -> str | None:
    faults = case.struck(*READS_WRONGLY)
    gone = case.gone
    lost = _number(gone)
    if not lost or not _beyond_its_batch(case):
        return None
    what = "good sample" if case.lost.any() else "damaged sample"
    for fault in faults:
        rank = int(fault["rank"])
        if case.epoch.stops[rank] is not Stop.END:
            continue
        told = _after(case.raised(rank), fault)
        if not len(told) and case.missing[fault["sample"]]:
            calls = case.epoch.calls[rank]
            whose = f"the share of {case.reader(fault)}" if _others_went_on(case, fault) else f"the epoch, at call {calls} of next(),"
            return (
                f"{whose} ended after the fault of sample {fault['sample']}, without an error: "
                f"{count(lost, what)} did not come"
            )
        got = case.history.of(Kind.GOT, epoch=case.epoch.number, rank=rank)
        if len(told) and not np.any(got["time"] > told[0]["time"]) and (gone & ~case.read).any():
            return (
                f"the epoch ended with the error of sample {fault['sample']} ({quoted(case.history, told[0])}), and "
                f"{count(lost, what)} did not come"
            )
    return None


def _others_went_on(case: Case, fault: np.void) -> bool:
    """Whether most of the samples that other processes of the fault's rank read after the fault arrived, in some batches."""
    if _number(case.lost) > _MOST_OF_IT * case.spec.samples / case.ranks:
        return False
    later = case.reads[
        (case.reads["rank"] == fault["rank"]) & (case.reads["time"] > fault["time"]) & (case.reads["pid"] != fault["pid"])
    ]
    arrived = case.arrived[case.arrived["rank"] == fault["rank"]]
    return bool(case.mask(arrived["sample"])[later["sample"]].any())


@diagnosis(
    "batch-lost-worker-alive",
    cause="A batch that was read completely is lost on its way to the consumer, while its worker is alive.",
    fix="Count the batches sent and received, and raise where one is missing; never drop a result because of another's error.",
    explains=_LOSSES,
    of_workers=True,
)
def batch_lost_worker_alive(case: Case) -> str | None:
    dead = case.struck(Effect.CRASH, Effect.STALL)["pid"]
    vanished = case.lost & case.read_whole & ~_beside_a_fault(case)
    if not vanished.any() or case.spec.drop_last or case.ends_with is not None:
        return None
    readers = case.reads[vanished[case.reads["sample"]]]
    if len(np.unique(readers["sample"])) < len(readers):
        return None  # several processes read it: one of them read past it, and the record does not show which of them owed it
    readers = readers[~np.isin(readers["pid"], dead)]
    readers = readers[case.in_worker(readers)] if len(readers) else readers
    if not len(readers) or (vanished & ~case.mask(readers["sample"])).any():
        return None
    waits = any(case.waits_for_ever(rank) for rank in range(case.ranks))
    if not waits and not case.epoch.whole:
        return None
    then = "the consumer waits for them" if waits else "the epoch went on without them"
    number = _number(vanished)
    return (
        f"{count(number, 'good sample')} ({spans(np.flatnonzero(vanished))}) {was(number)} read whole by {case.reader(readers[0])}, which "
        f"lives, and {then}"
    )


def _beside_a_fault(case: Case) -> Mask:
    """The samples that the process with a fault read so near to it that they may be in the same batch."""
    beside = case.mask(case.faults["sample"])
    reach = case.spec.batch_size - 1
    for pid in np.unique(case.faults["pid"]):
        order = case.reads[case.reads["pid"] == pid]["sample"]
        for at in np.flatnonzero(np.isin(order, case.faults["sample"])):
            beside[order[max(0, at - reach) : at + reach + 1]] = True
    return beside


@diagnosis(
    "error-dropped-with-its-batch",
    cause="An error is caught and dropped with the batch in which it happened.",
    fix="Raise the error in place of the batch, and go on with the next batch at the next call of next().",
    explains=(*_LOSSES, "correct-timeout", "exact-skip-count"),
    before=("skips-not-counted", "damage-shrinks-one-rank", "batch-lost-worker-alive"),
)
def error_dropped_with_its_batch(case: Case) -> str | None:
    faults = case.struck(*READS_WRONGLY, Effect.STALL, Effect.UNPICKLABLE)
    if not len(faults) or not case.epoch.whole or any(case.epoch.errors) or case.epoch.reported_total:
        return None
    lost = case.gone & ~case.mask(faults["sample"])
    if not lost.any() or _beyond_its_batch(case) or not (case.missing | case.lost)[faults["sample"]].any():
        return None
    if (lost & ~_near_a_fault(case)).any():
        return None
    number = _number(lost)
    return (
        f"no error reports sample {faults[0]['sample']}, which {case.reader(faults[0])} read, and "
        f"{count(number, 'sample')} beside it ({spans(np.flatnonzero(lost))}) did not come either: the epoch went on without the batch"
    )


def _near_a_fault(case: Case) -> Mask:
    """The samples that may share a batch with a damaged one: read next to it, or next to it in order and never read."""
    near = _beside_a_fault(case)
    reach = (case.spec.batch_size - 1) * case.ranks
    for sample in np.unique(case.faults["sample"]):
        near[max(0, int(sample) - reach) : int(sample) + reach + 1] = True
    return near


@diagnosis(
    "read-in-the-training-process",
    cause="Samples are read in the training process, so that a read which kills its process kills the training.",
    fix="Read in processes of their own, or declare @loader(readers=\"threads\") or readers=\"consumer\".",
    explains=("crash-surfaces", "finite-epoch"),
)
def read_in_the_training_process(case: Case) -> str | None:
    for death in case.struck(Effect.CRASH):
        if case.workers and not case.in_worker(np.array([death]))[0]:
            return f"sample {death['sample']} was read in {case.reader(death)}, which died, with {count(case.workers, 'worker')} asked for"
    return None
