"""Diagnoses that blame workers are withdrawn where the same happens without workers."""

from __future__ import annotations

import dataclasses

import pytest
from badbatch.conformance import check_loader
from badbatch.conformance.diagnoses.comparing import compared
from badbatch.conformance.judging.verdict import Diagnosis, Mark, Verdict
from badbatch.harness.trial.spec import Topology

_WORKERS = Diagnosis("batch-lost-worker-alive", "a batch is lost")
_ALONE = Verdict("m:a", "one-bad", "map", Topology(), "no-lost-batches", Mark.FAIL, "a", "b", lost=(4, 8, 9), diagnosis=None)
_WITH = dataclasses.replace(_ALONE, topology=Topology(2), lost=(8, 9), diagnosis=_WORKERS)
_FALSE_END = Diagnosis("false-end", "the epoch ended")
_AS_ALONE = Diagnosis("false-end", "As without workers, in one-bad[workers=0]: the epoch ended")


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        (_ALONE, None),
        (dataclasses.replace(_ALONE, diagnosis=_FALSE_END), _AS_ALONE),
        (dataclasses.replace(_ALONE, mark=Mark.PASS, lost=()), _WORKERS),
        (dataclasses.replace(_ALONE, lost=(8,)), _WORKERS),
        (dataclasses.replace(_ALONE, lost=(4, 5, 8)), None),
        (dataclasses.replace(_ALONE, lost=(4, 5, 6)), _WORKERS),
        (dataclasses.replace(_ALONE, topology=Topology(0, 2)), _WORKERS),
        (dataclasses.replace(_ALONE, scenario="clean"), _WORKERS),
    ],
)
def test_the_same_loss_without_workers_is_no_doing_of_the_workers(alone: Verdict, expected: Diagnosis | None) -> None:
    """The trial of the same scenario, source and ranks without workers decides, where the same samples are lost in it."""
    assert compared([_WITH, alone])[0].diagnosis == expected
    assert compared([_WITH], [alone])[0].diagnosis == expected


def test_a_diagnosis_of_anything_else_stays() -> None:
    """Only a diagnosis that blames workers is compared."""
    found = dataclasses.replace(_WITH, diagnosis=_FALSE_END)
    assert compared([_ALONE, found]) == [_ALONE, found]


def test_a_wrapper_that_loses_a_batch_is_not_blamed_on_its_workers() -> None:
    """A batch that the wrapper around the loader drops is lost without workers too, and the report does not blame them."""
    loader = "fixtures.loaders.liars_raising:next_batch_dropped"
    chosen = {"scenarios": ("one-bad",), "checks": ("no-lost-batches",), "ranks": (1,)}
    with_workers = check_loader(loader, workers=(2,), **chosen).verdicts
    both = check_loader(loader, workers=(0, 2), **chosen).verdicts
    assert [v.diagnosis and v.diagnosis.id for v in with_workers if v.mark is Mark.FAIL] == ["batch-lost-worker-alive"]
    assert [(len(v.lost), v.diagnosis) for v in both if v.mark is Mark.FAIL] == [(4, None)] * 2
