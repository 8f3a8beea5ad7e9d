"""Withdraws a diagnosis that blames workers, if the same check fails in the same way without workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..judging.verdict import Diagnosis, Mark, Verdict
from .base import registry

_Place = tuple[str, str, int, str]


def compared(verdicts: Iterable[Verdict], others: Iterable[Verdict] = ()) -> list[Verdict]:
    """The verdicts, where those with workers have been compared with those of the same scenario, source and ranks without.

    Where the same samples are lost without workers (or, where none are lost, a failure of the same kind is seen), the cause
    is not in the workers: the diagnosis of the trial without workers is named, if it has one.

    Args:
        others: verdicts of trials without workers that are not among ``verdicts``.
    """
    verdicts = list(verdicts)
    alone = {_place(v): v for v in (*others, *verdicts) if not v.topology.workers and v.mark is Mark.FAIL}
    return [_one(verdict, alone.get(_place(verdict))) for verdict in verdicts]


def _place(verdict: Verdict) -> _Place:
    return verdict.scenario, verdict.source, verdict.topology.ranks, verdict.check


def _one(verdict: Verdict, alone: Verdict | None) -> Verdict:
    if alone is None or not verdict.topology.workers or verdict.mark is not Mark.FAIL or verdict.diagnosis is None:
        return verdict
    entry = registry().get(verdict.diagnosis.id)
    if entry is None or not entry.of_workers or not _the_same(verdict, alone):
        return verdict
    found = alone.diagnosis
    told = None if found is None else Diagnosis(found.id, f"As without workers, in {alone.trial}: {found.text}")
    return dataclasses.replace(verdict, diagnosis=told)


def _the_same(verdict: Verdict, alone: Verdict) -> bool:
    """Whether what is lost with workers is lost without them too; where nothing is lost, whether both say the same.

    As many samples, and some of them the same: which of those that share a batch with a damaged one count as its
    collateral depends on which process read them.
    """
    if verdict.lost:
        return len(alone.lost) >= len(verdict.lost) and not set(verdict.lost).isdisjoint(alone.lost)
    return not alone.lost and (verdict.promised, verdict.happened) == (alone.promised, alone.happened)
