"""Loaders of a format of their own: what they are given to convert, and what is asked of them."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
import trials
from badbatch.conformance.engine.api import check_loader
from badbatch.conformance.engine.single import report_on
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.report import junit, terminal
from badbatch.harness import Job, NotCarried
from badbatch.harness.corpus.base import Choice, Recipe, State
from badbatch.harness.corpus.kinds import KINDS
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.manifest import read_samples
from badbatch.harness.corpus.samples import StoredSamples
from badbatch.harness.errors import LoaderError, UserError
from badbatch.harness.plan import FaultPlan
from badbatch.harness.sources.base import Question, find
from badbatch.harness.trial.spec import Topology, TrialSpec

GOLDEN = trials.ROOT / "fixtures" / "golden"
CONVERTED = "fixtures.loaders.converted:converted"


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_given_as_they_are_stored(kind: str) -> None:
    """Every sample that is there is given, in order, with its bytes; what is damaged is never given as it was before."""
    pytest.importorskip("pyarrow")
    records = {record.id: record for record in read_samples(str(GOLDEN / kind)) if record.state is not State.MISSING}
    found = list(StoredSamples(str(GOLDEN / kind))())
    assert [sample.id for sample in found] == list(records)
    for sample in found:
        record = records[sample.id]
        assert (sample.state == "damaged") == (record.state is State.DAMAGED)
        if sample.content is None or sample.lost:
            assert record.state is not State.GOOD
            continue
        digest = hashlib.sha256(sample.data).hexdigest()
        if record.state is State.GOOD:
            assert digest in (record.sha256, record.content)
        elif record.state is State.DAMAGED:
            assert digest != record.content
    assert sum(sample.content is not None and not sample.lost for sample in found) > len(found) / 2


@pytest.mark.parametrize("fault", ["hanging-pipe", "dangling-link"])
def test_what_is_no_file_is_never_opened_and_cannot_be_carried(fault: str, tmp_path: Path) -> None:
    """A pipe and a link to nothing have no bytes; asking for them is an error with the reason, and does not wait."""
    recipe = Recipe("imagefolder", 4, damage=0, faults=(Choice(fault, at=2),), size=(64, 64))
    make(str(tmp_path / "c"), recipe, jobs=1)
    struck = list(StoredSamples(str(tmp_path / "c"))())[2]
    for part in ("data", "fields"):
        with pytest.raises(NotCarried, match=r"cannot hold sample 2 \(" + fault + r"\): its path is a "):
            getattr(struck, part)


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"samples": 12},
        {"faults": (Choice("cut-line", at=2),)},
        {"faults": (Choice("cut-line", parameters={"newline": False}, at=1),)},
        {"format": "jsonl.gz"},
        {"kind": "parquet"},
    ],
    ids=str,
)
def test_each_corpus_has_a_cache_of_its_own(changed: dict[str, Any], tmp_path: Path) -> None:
    """What was converted from a corpus is not found by a trial with other damage, another format or other samples."""
    recipe = Recipe("jsonl", 8, damage=0, faults=(Choice("cut-line", at=1),), per_file=4)
    other = dataclasses.replace(recipe, **{**({"faults": ()} if "kind" in changed else {}), **changed})
    first, again, second = (
        find(one.kind).prepare(Question(one.samples, FaultPlan(), one), tmp_path).root for one in (recipe, recipe, other)
    )
    assert first == again != second


def test_the_trials_of_a_corpus_share_its_cache(tmp_path: Path) -> None:
    """The second trial over a corpus finds what the first one made; a trial over another corpus makes its own."""
    clean, ranks = (trials.question(CONVERTED, "clean", Topology(0, ranks), "jsonl") for ranks in (1, 2))
    damaged = trials.question(CONVERTED, "one-bad", Topology(), "jsonl")

    def made(spec: TrialSpec) -> dict[Path, int]:
        return {path: path.stat().st_ino for path in Path(f"{spec.root}.made").iterdir() if not path.name.endswith(".lock")}

    trials.put([clean, damaged], tmp_path / "first")
    first = made(clean)
    assert len(first) == len(made(damaged)) == 1
    assert not set(first) & set(made(damaged))
    trials.put([ranks], tmp_path / "second")
    assert made(ranks) == first


def test_a_job_without_a_source_lists_no_samples() -> None:
    """A job that a test made by hand says so in one line."""
    job = Job("map", None, None, 1, 1, 0, 0, 1, False, 0, 0, False, 0.0, None, None, lambda sample, reason: None)
    with pytest.raises(UserError, match="no source"):
        job.stored_samples()


def test_a_loader_that_carries_the_damage_passes() -> None:
    """Over every kind of corpus its own format is judged as the corpus; what it cannot hold is n/a, with the reason."""
    asked = ["clean", "one-bad", "oddities", "damage-*", "remainder-one", "hung-read", "no-permission"]
    report = check_loader(CONVERTED, scenarios=asked, workers=(0,), ranks=(1,), deadline=60)
    assert report.ok, report
    marks = {(verdict.source, verdict.scenario): set[Mark]() for verdict in report.verdicts}
    for verdict in report.verdicts:
        marks[verdict.source, verdict.scenario].add(verdict.mark)
    for kind in KINDS:
        assert Mark.PASS in marks[kind, "one-bad"]
    assert marks["imagefolder", "damage-path"] == {Mark.NA}
    reasons = {verdict.reason for verdict in report.verdicts if verdict.scenario == "damage-path"}
    assert any(reason.endswith("its path is a link to nothing") for reason in reasons)


def test_a_loader_that_converts_samples_in_memory_passes() -> None:
    """What changes a sample is carried along, and seen to take effect; what strikes a read is n/a."""
    asked = ["clean", "one-bad", "null-field", "ragged-window", "nan", "empty-tensor", "drop-last"]
    report = check_loader("fixtures.loaders.converted:converted_map", scenarios=asked, workers=(0,), ranks=(1,))
    assert report.ok, report
    passed = {verdict.scenario for verdict in report.verdicts if verdict.mark is Mark.PASS}
    assert passed == set(asked) - {"one-bad"}
    assert {v.mark for v in report.verdicts if v.scenario == "one-bad"} == {Mark.NA}


def test_a_refusal_is_shown_with_its_reason_in_every_report(tmp_path: Path) -> None:
    """The factory's own words, in one line, in the terminal, in JUnit and in JSON; nothing is called observed."""
    spec = trials.question("fixtures.loaders.refusing:whatever_is_damaged", "one-bad", Topology(0, 1), "jsonl")
    [judged] = trials.put([spec], tmp_path).values()
    assert {verdict.mark for verdict in judged.verdicts} == {Mark.NA}
    report = report_on(judged.history, {}, "fork")
    for text in (terminal.render(report), junit.dumps([report]), str(report.to_json())):
        assert "there is no room for damage" in text
    assert report.trials[0].observed.errors == 0


def test_nothing_is_refused_where_nothing_is_damaged(tmp_path: Path) -> None:
    """A format that cannot hold a clean corpus is a loader that cannot be built."""
    spec = trials.question("fixtures.loaders.refusing:everything", "clean", Topology(0, 1), "jsonl")
    [judged] = trials.put([spec], tmp_path).values()
    failed = [verdict for verdict in judged.verdicts if verdict.mark is Mark.FAIL]
    assert [verdict.check for verdict in failed] == ["contract-kept"]
    assert "this format holds nothing" in failed[0].happened


def test_what_cannot_be_probed_has_to_be_declared() -> None:
    """Where the damage of the probe cannot be carried, the missing promise is named in one line."""
    with pytest.raises(LoaderError, match=r"must declare on_damage: it cannot be inferred, since another format cannot hold sample 5"):
        check_loader("fixtures.loaders.refusing:undeclared", scenarios=["clean"], workers=(0,), ranks=(1,))
