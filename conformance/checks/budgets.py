"""Checks on budgets: how many damaged samples in a row are skipped, and how often a sample is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...harness.contract.job import Contract
from ...harness.sources.base import truth
from ...harness.trial.event_log import Kind
from ...harness.trial.history import Events, History
from ...harness.trial.phases import plain
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation, longest_run
from ..judging.ledger import Epoch, Ledger
from ..judging.raised import DURING_EPOCH, last_line, may_pass, quoted
from .base import Violation, check, count, spans, was


def _limits(contract: Contract, spec: TrialSpec) -> str | None:
    return None if contract.skip_budget else "the loader does not declare skip_budget=True"


@check(
    "skip-budget",
    title="Too many damaged samples in a row end in an error",
    why="A mount that is gone looks like damage without end: a loader that skips it all reports a finished epoch without any data.",
    source="Job.max_consecutive_skips; DESIGN of badbatch",
    exercised=lambda spec: spec.max_consecutive_skips is not None,
    needs=_limits,
    implies=("contract-kept", "no-lost-batches", "exact-skip-count", "full-batches", "honest-length", "error-names-sample"),
)
def skip_budget(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """k in a row are skipped, a good sample begins a new count, and k + 1 raise an error that says how many they were.

    Several readers may each count on their own: then nothing is required between k in a row and k for each reader.
    """
    limit = expected.skip_limit
    if limit is None:
        return
    for epoch in ledger.epochs:
        raised = history.of(Kind.RAISED, epoch=epoch.number)
        raised = raised[np.isin(raised["flags"], DURING_EPOCH)]
        if not len(raised):
            if expected.must_give_up and epoch.whole:
                yield Violation(
                    f"an error after more than {count(limit, 'damaged sample')} in a row",
                    f"the epoch ended without an error, although {longest_run(expected.damaged)} in a row were damaged",
                )
        elif not expected.may_give_up:
            yield Violation(
                f"up to {count(limit, 'damaged sample')} in a row are skipped, and a good one begins a new count",
                f"the consumer got {quoted(history, raised[0])}",
            )
        else:
            yield from _counted(history, raised[0], limit, expected)


def _counted(history: History, raised: Any, limit: int, expected: Expectation) -> Iterator[Violation]:
    """The error comes at the first sample too many, where that can be seen, and has a count in its message."""
    struck = history.of(Kind.FAULT)
    met = len(np.unique(struck["sample"][struck["time"] <= raised["time"]]))
    one_reader = history.spec.topology.workers == 0 and history.spec.topology.ranks == 1
    if one_reader and met != limit + 1:
        yield Violation(
            f"the error comes when {count(limit + 1, 'damaged sample')} in a row were read",
            f"it came after {met}: {quoted(history, raised)}",
        )
    elif not {limit, limit + 1, met} & {int(number) for number in re.findall(r"\d+", last_line(history.text(raised)))}:
        yield Violation("the error says how many damaged samples in a row there were", f"it was {quoted(history, raised)}")


_UNDECLARED = 10  # attempts: more than libraries make by default, and few enough that each of them may wait before it


def _drawn_once(contract: Contract, spec: TrialSpec) -> str | None:
    return "samples are drawn with replacement" if contract.replacement else None


def _countable(spec: TrialSpec) -> bool:
    """Whether each read belongs to the one epoch of the trial, and none was lost with its process or given up after a timeout."""
    known = truth(spec)
    return known.reads_recorded and spec.phases == plain() and not spec.timeout_s and not known.lethal.any()


@check(
    "bounded-reads",
    title="A sample is read once, and again only after an error that may pass",
    why="A loader that reads each file twice, or a damaged one again and again, is slow, and no log says why.",
    source="DESIGN of badbatch; retries of network file systems and object stores",
    exercised=_countable,
    needs=_drawn_once,
)
def bounded_reads(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """As many reads as deliveries; after an OSError as many as the contract's attempts, after any other error no second one."""
    samples = expected.spec.samples
    counted = _most_by_one_reader(_during(history, Kind.READ, samples), samples)
    failed = _during(history, Kind.READ_DONE, samples)
    failed = failed[failed["flags"] == 1]
    passing = {int(event["sample"]) for event in failed if may_pass(history.text(event, "type"))}
    final = {int(sample) for sample in failed["sample"]} - passing
    attempts = expected.contract.attempts or _UNDECLARED
    turns = _turns(ledger.first, expected)
    for chosen, limit, promised in (
        (passing, attempts, f"at most {count(attempts, 'attempt')} to read a sample that fails with an OSError"),
        (final, 1, "a read that failed with an error other than OSError is not tried again"),
        (set(range(samples)) - passing - final, 1, "a sample that can be read is read once for each delivery"),
    ):
        often = [sample for sample in sorted(chosen) if counted[sample] > turns[sample] * limit]
        if often:
            worst = max(often, key=lambda sample: int(counted[sample]))
            yield Violation(
                promised,
                f"{count(len(often), 'sample')} ({spans(often)}) {was(len(often))} read more often, sample {worst} {counted[worst]} times",
                witnesses=tuple(often),
            )


def _during(history: History, kind: Kind, samples: int) -> Events:
    """The readers' events after the beginning of the epoch on their rank: a loader may look at a sample when it is built."""
    events = history.of(kind)
    begun = np.full(history.spec.most_ranks, np.iinfo(np.int64).max)
    for event in history.of(Kind.EPOCH):
        begun[event["rank"]] = min(begun[event["rank"]], event["time"])
    inside: Events = events[(events["time"] >= begun[events["rank"]]) & (events["sample"] >= 0) & (events["sample"] < samples)]
    return inside


def _most_by_one_reader(reads: Events, samples: int) -> npt.NDArray[np.int64]:
    """For each sample how often the reader read it that did so most often: each may have to pass the samples of the others."""
    most = np.zeros(samples, np.int64)
    for pid, thread in sorted(set(zip(reads["pid"].tolist(), reads["aux"].tolist(), strict=True))):
        mine = reads["sample"][(reads["pid"] == pid) & (reads["aux"] == thread)]
        np.maximum(most, np.bincount(mine, minlength=samples), out=most)
    return most


def _turns(epoch: Epoch, expected: Expectation) -> npt.NDArray[np.int64]:
    """How often a reader reads each sample for a reason: for each delivery, for padding, and in place of another."""
    padded = -(-expected.pad_budget // max(1, expected.spec.samples))
    replaced = int(np.count_nonzero(expected.damaged)) if expected.contract.on_damage == "substitute" else 0
    turns: npt.NDArray[np.int64] = np.maximum(epoch.arrivals, 1) + padded + replaced
    return turns
