"""Diagnoses that blame workers are withdrawn where the same happens without workers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from badbatch.conformance import check_loader
from badbatch.conformance.diagnoses.comparing import compared
from badbatch.conformance.engine.context import CONTEXT, read
from badbatch.conformance.engine.single import judge_folder, replay
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Diagnosis, Mark, Verdict
from badbatch.conformance.options import Options
from badbatch.harness.errors import UserError
from badbatch.harness.trial.spec import Topology
from trials import ROOT

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


@pytest.mark.timeout(200)
def test_a_kept_trial_judged_alone_gets_the_diagnosis_of_the_suite(tmp_path: Path) -> None:
    """`judge` and `replay` of one folder compare it with what failed without workers, as the suite did; so does `judge` of a replay."""
    chosen = Options(workers=(0, 2), ranks=(1,), scenarios=("one-bad",), checks=("no-lost-batches",))
    with Suite("fixtures.loaders.liars_raising:next_batch_dropped", chosen, ROOT, failures=tmp_path / "kept") as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    (said,) = (v.diagnosis for v in report.verdicts if v.mark is Mark.FAIL and v.topology.workers)
    folder = tmp_path / "kept" / "one-bad-w2"
    again, _ = replay(folder, tmp_path / "again")
    for judged in (judge_folder(folder)[0], again, judge_folder(tmp_path / "again")[0]):
        (verdict,) = (v for v in judged.verdicts if v.check == "no-lost-batches")
        assert verdict.mark is Mark.FAIL
        assert verdict.diagnosis == said
    (folder / "context.json").unlink()
    (verdict,) = (v for v in judge_folder(folder)[0].verdicts if v.check == "no-lost-batches")
    assert verdict.diagnosis != said  # as older folders are judged


@pytest.mark.timeout(200)
@pytest.mark.parametrize("order", [(0, 2), (2, 0)])
def test_the_trial_without_workers_may_run_in_another_process(order: tuple[int, int], tmp_path: Path) -> None:
    """Under pytest-xdist the process whose trial ends last stores what is compared, whichever that is."""
    chosen = Options(workers=(0, 2), ranks=(1,), scenarios=("one-bad",), checks=("no-lost-batches",))
    for workers in order:
        loader = "fixtures.loaders.liars_raising:next_batch_dropped"
        with Suite(loader, chosen, ROOT, failures=tmp_path / "kept", shared=tmp_path / "shared") as suite:
            suite.start()
            suite.prepare()
            (spec,) = (spec for spec in suite.specs() if spec.topology.workers == workers)
            suite.only({(spec.id, "no-lost-batches")})
            suite.result(spec)
    (entry,) = read(tmp_path / "kept" / "one-bad-w2").without_workers
    assert (entry.check, entry.topology.workers) == ("no-lost-batches", 0)


@pytest.mark.timeout(200)
def test_a_kept_trial_of_a_loader_that_is_not_clean_is_inconclusive_alone_too(tmp_path: Path) -> None:
    """Where the loader fails the clean scenario, a trial with a fault proves nothing, in the suite and judged from its folder."""
    chosen = Options(workers=(0,), ranks=(1,), scenarios=("one-bad",), checks=("no-lost-batches",), keep=tmp_path / "kept")
    with Suite("fixtures.loaders.liars_raising:last_batch_kept", chosen, ROOT) as suite:
        suite.start()
        suite.prepare()
        (verdict,) = suite.run().verdicts
    assert verdict.mark is Mark.INCONCLUSIVE
    judged, _ = judge_folder(tmp_path / "kept" / "one-bad-w0")
    (alone,) = (v for v in judged.verdicts if v.check == "no-lost-batches")
    assert (alone.mark, alone.reason) == (verdict.mark, verdict.reason)


def test_a_damaged_context_is_reported_in_one_line(tmp_path: Path) -> None:
    """The line names the file."""
    (tmp_path / CONTEXT).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=f"{CONTEXT} cannot be read"):
        read(tmp_path)


def test_a_wrapper_that_loses_a_batch_is_not_blamed_on_its_workers() -> None:
    """A batch that the wrapper around the loader drops is lost without workers too, and the report does not blame them."""
    loader = "fixtures.loaders.liars_raising:next_batch_dropped"
    chosen = {"scenarios": ("one-bad",), "checks": ("no-lost-batches",), "ranks": (1,)}
    with_workers = check_loader(loader, workers=(2,), **chosen).verdicts
    both = check_loader(loader, workers=(0, 2), **chosen).verdicts
    assert [v.diagnosis and v.diagnosis.id for v in with_workers if v.mark is Mark.FAIL] == ["batch-lost-worker-alive"]
    assert [(len(v.lost), v.diagnosis) for v in both if v.mark is Mark.FAIL] == [(4, None)] * 2
