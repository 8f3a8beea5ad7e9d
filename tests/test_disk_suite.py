"""The suite over corpora on disk: its scenarios, what they owe, and whole runs over loaders known good and broken."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for _needed in ("PIL", "faker", "pyarrow"):
    pytest.importorskip(_needed)

import trials
from badbatch.conformance import scenarios
from badbatch.conformance.commands import cli
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.preparations import Preparations
from badbatch.conformance.engine.single import judge_folder, replay
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.ledger import Fate
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.report import terminal
from badbatch.conformance.scenarios import disk as disk_scenarios
from badbatch.harness.corpus import make, pipes
from badbatch.harness.corpus.base import State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.damage.lines.cut_file import CutFile
from badbatch.harness.corpus.damage.lines.cut_line import CutLine
from badbatch.harness.corpus.damage.paths.hanging_pipe import HangingPipe
from badbatch.harness.corpus.damage.paths.missing_file import MissingFile
from badbatch.harness.corpus.damage.paths.trickling_pipe import TricklingPipe
from badbatch.harness.corpus.facts import recipe_of
from badbatch.harness.corpus.kinds import KINDS
from badbatch.harness.corpus.manifest import read_samples
from badbatch.harness.corpus.stored import Stored
from badbatch.harness.corpus.verify import verify
from badbatch.harness.errors import UserError
from badbatch.harness.exit_codes import ExitCode
from badbatch.harness.sources.base import find as find_source
from badbatch.harness.sources.truth import Owed
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.spec import Topology, TrialSpec
from history_dsl import RAISES, SKIPS, broken, history_of, ledger_of

LINES = "fixtures.loaders.disk:lines"
TWO_FILES = (("a.jsonl", 0, 6), ("b.jsonl", 6, 6))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Preparations:
    return Preparations(tmp_path_factory.mktemp("corpora"))


def question(corpora: Preparations, name: str, kind: str, **settings: Any) -> TrialSpec:
    """A trial of that scenario."""
    asked = corpora.settings(disk_scenarios.find(name, kind), kind, 40, 4, seed=0)
    return TrialSpec(LINES, str(trials.ROOT), name, kind, Topology(), **{**asked, **settings})


# --- scenarios -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_each_scenario_does_to_its_corpus_what_it_says(corpora: Preparations, kind: str) -> None:
    """In each corpus the faults that its scenario names had an effect, oddities are good, and most samples are good."""
    for scenario in disk_scenarios.offered(kind):
        spec = question(corpora, scenario.name, kind)
        assert spec.stored is not None
        # A file without samples affects none of the other files' samples.
        known = disk_faults(kind)
        named = {strike.fault for strike in scenario.on[kind].strikes}
        named = {name for name in named if getattr(known[name], "adds_file", None) is None}
        met = {fault.kind for fault in spec.plan.values()}
        if scenario.name == "no-permission" and not met:  # a privileged user may read everything
            assert [why for _, why in spec.stored.idle if "may read anything" in why]
            continue
        # A fault that left its sample as good as before is recorded as idle.
        recipe = recipe_of(spec.stored)
        placed = {choice.at: choice.fault for choice in recipe.faults if known[choice.fault].level == "sample"}
        idle = {placed[sample] for sample, _ in spec.stored.idle if sample in placed}
        assert met | idle == named, scenario.name
        assert bool(met) == bool(named), scenario.name
        states = {state for _, state in spec.stored.states}
        odd = all(disk_faults(kind)[name].odd for name in named)
        assert states <= {"odd"} if odd else states and "odd" not in states, scenario.name
        assert np.count_nonzero(expect(spec).good) >= spec.samples / 3
        assert sum(count for _, _, count in spec.stored.files) == spec.samples


@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("given", [1, 40, 100])
def test_files_divide_among_processes(given: int, batch_size: int) -> None:
    """In the clean corpus 1, 2 and 4 processes get whole files, and all the same number; 4 and more get whole batches."""
    recipe = disk_scenarios.find("clean", "parquet").recipe("parquet", given, batch_size, 0)
    assert recipe.samples == disk_scenarios.FILES * recipe.per_file
    assert (2 * recipe.per_file) % batch_size == 0
    few = disk_scenarios.find("few-shards", "parquet").recipe("parquet", given, batch_size, 0)
    assert few.per_file == few.samples
    uneven = disk_scenarios.find("uneven-shards", "parquet").recipe("parquet", given, batch_size, 0)
    assert (uneven.samples // uneven.per_file) % 2 == 1
    odd = disk_scenarios.find("remainder-one", "parquet").recipe("parquet", given, batch_size, 0)
    assert odd.samples % batch_size == 1 % batch_size


def test_every_family_of_damage_has_its_scenario() -> None:
    """No fault on disk is without a scenario, except those of formats that are not the usual ones."""
    used = {strike.fault for one in disk_scenarios.SCENARIOS for damage in one.on.values() for strike in damage.strikes}
    assert set(disk_faults()) - used <= {"cut-gzip"}


def test_names_are_those_of_memory_and_disk() -> None:
    """Scenarios in memory and on disk share one name, which is listed once; each source has its own."""
    assert len(scenarios.names()) == len(set(scenarios.names()))
    assert {"clean", "one-bad", "hung-read"} <= set(scenarios.names("map")) & set(scenarios.names("imagefolder"))
    assert "lost-shard" in set(scenarios.names("webdataset")) - set(scenarios.names("imagefolder"))
    with pytest.raises(UserError, match=r"unknown scenario of parquet 'hung-reed'"):
        scenarios.find("hung-reed", "parquet")


def test_a_corpus_is_made_once(corpora: Preparations) -> None:
    """The same question uses the same folder, and another seed uses another one."""
    clean = disk_scenarios.find("clean", "jsonl")
    first, again, other = (corpora.settings(clean, "jsonl", 40, 4, seed)["root"] for seed in (0, 0, 1))
    assert first == again != other


# --- the question --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [("imagefolder", "damage-cut"), ("parquet", "cut-shard"), ("webdataset", "oddities")])
def test_a_question_survives_its_file(corpora: Preparations, kind: str, name: str) -> None:
    """A trial goes through JSON and back with its plan of faults on disk and all that it knows of its corpus."""
    spec = question(corpora, name, kind)
    assert TrialSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_question_is_read_by_a_fresh_interpreter(corpora: Preparations, tmp_path: Path) -> None:
    """The faults on disk of a stored trial can be read without making a corpus."""
    question(corpora, "damage-cut", "imagefolder").write(tmp_path / "trial.json")
    code = f"""
from pathlib import Path
from badbatch.conformance.judging.expectation import expect
from badbatch.harness.trial.spec import TrialSpec
print(int(expect(TrialSpec.read(Path({str(tmp_path / "trial.json")!r}))).damaged.sum()))
"""
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert int(done.stdout) > 5, done.stderr


def test_a_missing_corpus_is_made_again(tmp_path: Path) -> None:
    """The recipe in the trial is enough to make the same bytes at another place."""
    spec = question(Preparations(tmp_path / "one"), "one-bad", "jsonl")
    assert find_source(spec.source).restore(spec, tmp_path / "unused") is spec
    before = {path.name: path.read_bytes() for path in Path(spec.root or "").rglob("*.jsonl")}
    shutil.rmtree(tmp_path / "one")
    again = find_source(spec.source).restore(spec, tmp_path / "two")
    assert dataclasses.replace(again, root=spec.root) == spec
    assert {path.name: path.read_bytes() for path in Path(again.root or "").rglob("*.jsonl")} == before


def test_a_corpus_that_differs_when_made_again_is_refused(tmp_path: Path) -> None:
    """Where other libraries judge a sample otherwise, the trial is not run as if it were the same."""
    spec = question(Preparations(tmp_path / "one"), "one-bad", "jsonl")
    assert spec.stored is not None
    other = dataclasses.replace(spec, root=None, stored=dataclasses.replace(spec.stored, states=((9, "contested"),)))
    with pytest.raises(UserError, match=r"one-bad.*cannot be made again as it was: sample 7 was good and is now damaged"):
        find_source(other.source).restore(other, tmp_path / "two")


# --- what is owed --------------------------------------------------------------------------------------------------------


def stored(plan: dict[int, Any], states: dict[int, str], **settings: Any) -> dict[str, Any]:
    """Settings of a story over two files of six lines."""
    fields = {"source": "jsonl", "plan": plan, "stored": Stored("{}", tuple(states.items()), TWO_FILES)}
    return {**fields, **settings}


def test_each_state_owes_its_own() -> None:
    """Good, odd and slow samples must arrive, damaged ones not, contested ones may, and of missing ones nobody need know."""
    names = [state.value for state in State] + ["odd"]
    plan = {sample: HangingPipe() if name == "hangs" else CutLine() for sample, name in enumerate(names)}
    spec = history_of("0-3 end", **stored(plan, dict(enumerate(names)))).spec
    owed = dict(zip(names, expect(spec).owed.tolist()))
    assert owed == {
        "good": Owed.GOOD, "odd": Owed.GOOD, "slow": Owed.GOOD, "damaged": Owed.DAMAGED, "hangs": Owed.DAMAGED,
        "contested": Owed.EITHER, "missing": Owed.ABSENT,
    }  # fmt: skip
    assert np.flatnonzero(expect(spec).odd).tolist() == [names.index("odd")]
    assert np.flatnonzero(expect(spec).lethal).tolist() == [names.index("hangs")]


CUT = {sample: CutFile() for sample in (9, 10, 11)}
CUT_STATES = {9: "damaged", 10: "missing", 11: "missing"}
JOINED = {2: CutLine(newline=False), 3: CutLine(newline=False)}
JOINED_STATES = {2: "damaged", 3: "damaged"}


def test_what_one_fault_cost_is_one_unit() -> None:
    """Samples of a broken file, and lines that ran into each other, can only be reported together; others separately."""
    plan = {**CUT, **JOINED, 6: CutLine(keep=0.4)}
    spec = history_of("0-3 end", **stored(plan, {**JOINED_STATES, 6: "damaged", **CUT_STATES})).spec
    assert expect(spec).unit.tolist() == [0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 9, 9]


@pytest.mark.parametrize(
    "story",
    [
        "0-3 4-7 8 skip9 end",
        "0-3 4-7 8 skip? end",
        "0-3 4-7 8 skip9-11 end",
        "0-3 4-7 8 end skipped1",
        "0-3 4-7 8 end skipped3",
    ],
)
def test_a_broken_file_may_be_reported_once_or_for_each_sample(story: str) -> None:
    """By the id of its first sample, by -1 if the loader cannot tell which, by a count, or sample by sample."""
    history = history_of(story, **stored(CUT, CUT_STATES, contract=SKIPS))
    for check in ("exact-skip-count", "no-lost-batches", "contract-kept", "loss-factor"):
        assert broken(check, history) == []
    assert set(ledger_of(history).first.fate[9:].tolist()) <= {Fate.SKIPPED}


@pytest.mark.parametrize("story", ["0-3 4-7 8 end", "0-3 4-7 8 end skipped0", "0-3 4-7 8 end skipped4", "0-3 4-7 8 skip3 end"])
def test_a_broken_file_must_be_reported(story: str) -> None:
    """Silence about it, a count beyond its samples, and another sample's name are wrong."""
    assert broken("exact-skip-count", history_of(story, **stored(CUT, CUT_STATES, contract=SKIPS)))


def test_missing_samples_need_no_report() -> None:
    """A missing file may go unmentioned, be reported, or be raised; but it cannot arrive."""
    gone: dict[str, Any] = stored({7: MissingFile()}, {7: "missing"}, contract=SKIPS)
    for story in ("0-3 4,5,6,8 9-11 end", "0-3 4,5,6,8 9-11 skip7 end", "0-3 4,5,6,8 9-11 end skipped1"):
        history = history_of(story, **gone)
        for check in ("exact-skip-count", "no-lost-batches", "contract-kept", "content-intact"):
            assert broken(check, history) == [], story
    assert broken("contract-kept", history_of("0-3 raise 8-11 end", **{**gone, "contract": RAISES})) == []
    assert broken("content-intact", history_of("0-3 4-7 8-11 end", **gone))


def test_padding_counts_what_the_loader_finds() -> None:
    """Ranks may be made equal by a repetition that the missing file makes necessary."""
    gone: dict[str, Any] = stored({7: MissingFile()}, {7: "missing"}, ranks=2, batch=6)
    story = "r0: 0,1,2,3,4,5 end r1: 6,8,9,10,11,0 end"
    assert broken("no-duplicates", history_of(story, **gone)) == []
    assert broken("no-duplicates", history_of("r0: 0,1,2,3,4,5 end r1: 6,8,9,10,11,0,1 end", **gone))


def test_contested_samples_must_be_one_of_the_two() -> None:
    """They may arrive as some decoder had them, or be skipped with a word, but not vanish."""
    contested: dict[str, Any] = stored({7: CutLine()}, {7: "contested"}, contract=SKIPS)
    for story in ("0-3 4-7 8-11 end", "0-3 4,5,6,7~ 8-11 end", "0-3 4,5,6,8 9-11 skip7 end"):
        for check in ("content-intact", "exact-skip-count", "no-lost-batches", "contract-kept"):
            assert broken(check, history_of(story, **contested)) == [], story
    (violation,) = broken("no-lost-batches", history_of("0-3 4,5,6,8 9-11 end", **contested))
    assert "some decoder finds good" in violation.happened


def test_a_promised_blast_radius_covers_the_file() -> None:
    """What the contract gives up with a damaged sample is collateral, in that file and in no other."""
    promised = dataclasses.replace(SKIPS, blast_radius="shard")
    history = history_of("0-3 4,5,6 skip7 end", **stored({7: CutLine()}, {7: "damaged"}, contract=promised))
    assert broken("no-lost-batches", history) == []
    assert ledger_of(history).first.having(Fate.COLLATERAL).tolist() == [8, 9, 10, 11]
    beyond = history_of("0-3 4,6 skip7 end", **stored({7: CutLine()}, {7: "damaged"}, contract=promised))
    assert [violation.lost for violation in broken("no-lost-batches", beyond)] == [(5,)]


def test_a_loss_is_reported_with_its_width() -> None:
    """The report says what went with the damaged sample: its batch, its row group, the rest of its file, or all of it."""
    bad: dict[str, Any] = stored({7: CutLine()}, {7: "damaged"}, contract=SKIPS, batch=2)
    grouped = {**bad, "stored": dataclasses.replace(bad["stored"], groups=(0, 3, 6, 9))}
    widths = {
        "0,1 2,3 4,5 8,9 10,11 end": "its batch",
        "0,1 2,3 4,5 6,10 11 end": "the rest of b.jsonl",
        "0,1 2,3 4,5 end": "its file b.jsonl",
        "0,1 2,3 4,5 6 end": "the rest of b.jsonl",
    }
    for story, width in widths.items():
        (violation,) = broken("loss-factor", history_of(story, **bad))
        assert violation.happened.endswith(width), story
        assert violation.witnesses == (7,)
    (violation,) = broken("loss-factor", history_of("0,1 2,3 4,5 9,10 11 end", **{**grouped, "batch": 1}))
    assert violation.happened.endswith("its row group in b.jsonl")


def test_what_a_loader_does_not_use_may_be_damaged() -> None:
    """A damaged sample may come with its own content in all fields that others have; without one of them it may not."""
    bad: dict[str, Any] = stored({7: CutLine()}, {7: "damaged"}, contract=SKIPS)
    assert broken("content-intact", history_of("0-3 4-7 8-11 end", **bad)) == []
    assert broken("content-intact", history_of("0-3 4-6,7^ 8-11 end", **bad))
    assert broken("content-intact", history_of("0-3 4-6,7~ 8-11 end", **bad))


def test_an_error_for_a_damaged_batch_costs_no_good_sample() -> None:
    """A loader that skips may raise if a whole batch is damaged; good samples lost with it are still lost."""
    four = {sample: CutLine() for sample in (4, 5, 6, 7)}
    bad: dict[str, Any] = stored(four, dict.fromkeys(four, "damaged"), contract=SKIPS)
    assert broken("no-lost-batches", history_of("0-3 raise 8-11 end", **bad)) == []
    (violation,) = broken("no-lost-batches", history_of("0-3 raise skip4-7 end", **bad))
    assert violation.lost == (8, 9, 10, 11)


def test_a_picture_in_which_nothing_can_be_read_is_the_contested_one() -> None:
    """What decoders disagree on may come without its mark; one more such picture was never in the source."""
    doubtful: dict[str, Any] = stored({7: CutLine()}, {7: "contested"}, contract=SKIPS)
    assert broken("content-intact", history_of("0-3 4-6,~ 8-11 end", **doubtful)) == []
    assert broken("no-lost-batches", history_of("0-3 4-6,~ 8-11 end", **doubtful)) == []
    assert broken("content-intact", history_of("0-3 4-6,~ 8-11,~ end", **doubtful))


def test_ranks_may_be_evened_out_by_what_is_left() -> None:
    """A loader that left damaged lines out before it split the rest repeats as many samples as make those shares equal."""
    shared: dict[str, Any] = stored({7: CutLine()}, {7: "damaged"}, contract=SKIPS, ranks=2)
    evened = "r0:0-3 r0:4-6 r0:skip7 r0:end r1:8-11 r1:0 r1:end"
    assert broken("no-duplicates", history_of(evened, **shared)) == []
    assert broken("no-duplicates", history_of("r0:0-3 r0:4-6 r0:skip7 r0:end r1:8-11 r1:0,1 r1:end", **shared))


def test_an_oddity_is_no_cause_to_stop() -> None:
    """A loader that promises to stop at damage has no excuse for raising where nothing is damaged."""
    odd: dict[str, Any] = stored({7: CutLine()}, {7: "odd"}, contract=dataclasses.replace(RAISES, after_error="stop"))
    history = history_of("0-3 raise end", **odd)
    assert broken("contract-kept", history)
    assert broken("no-lost-batches", history)


# --- verdicts ------------------------------------------------------------------------------------------------------------


def verdicts(history: Any) -> dict[str, Mark]:
    """The mark of each check."""
    return {verdict.check: verdict.mark for verdict in judge(history)}


def test_a_fault_that_could_not_take_hold_makes_its_trial_not_applicable() -> None:
    """As root a file without permission can be read: nothing can be checked, and the reason is given.

    A failure still counts.
    """
    idle = dataclasses.replace(Stored("{}", (), TWO_FILES), idle=((5, "this user may read anything"),))
    found = judge(history_of("0-3 4-7 8-11 end", source="jsonl", stored=idle))
    assert {verdict.mark for verdict in found} == {Mark.NA}
    reasons = {verdict.check: verdict.reason for verdict in found}
    assert reasons["finite-epoch"] == "no fault could have an effect when the corpus was made: this user may read anything"
    assert verdicts(history_of("0-3 8-11 end", source="jsonl", stored=idle))["no-lost-batches"] is Mark.FAIL


@pytest.mark.skipif(os.geteuid() != 0, reason="another user cannot read such a file")
def test_a_run_over_pictures_can_be_green_as_root() -> None:
    """No-permission is not applicable to root, and does not change the exit code."""
    options = Options(workers=(0,), ranks=(1,), scenarios=("no-permission", "clean"))
    with Suite("fixtures.pipelines.pillow_folder:raising", options, trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    (asked,) = [trial for trial in report.trials if trial.spec.scenario == "no-permission"]
    assert asked.ended == "not run"
    assert {verdict.mark for verdict in asked.verdicts} == {Mark.NA}
    assert report.exit_code is ExitCode.KEPT


def test_a_pipe_that_nobody_was_seen_to_open_acquits_nobody() -> None:
    """Where a read should hang, a trial in which none was begun is inconclusive; for a bad line it need not be seen."""
    hung = stored({7: HangingPipe()}, {7: "hangs"}, timeout_s=1.0, workers=2)
    assert verdicts(history_of("0-3 raise 8-11 end", **hung))["finite-epoch"] is Mark.INCONCLUSIVE
    assert verdicts(history_of("0-3 w0:fault7 ask +1.1s raise 8-11 end", **hung))["finite-epoch"] is Mark.PASS
    bad = stored({7: CutLine()}, {7: "damaged"})
    assert verdicts(history_of("0-3 raise:OSError:line_7_of_b.jsonl 8-11 end", **bad))["finite-epoch"] is Mark.PASS


def test_a_pipe_that_a_loader_does_not_list_is_no_lost_sample() -> None:
    """If other opens are recorded and its own is not, the trial is not applicable; a loader that opened it must report it."""
    for pipe, state in ((HangingPipe(), "hangs"), (TricklingPipe(), "slow")):
        settings = stored({7: pipe}, {7: state}, timeout_s=1.0, workers=2)
        found = judge(history_of("w0:read0-6 0-3 4-6,8 9-11 end", **settings))
        assert {verdict.mark for verdict in found if verdict.mark is not Mark.NA} == set(), state
        assert "regular files" in {verdict.check: verdict.reason for verdict in found}["finite-epoch"]
        opened = judge(history_of("w0:read0-6 w0:fault7 0-3 4-6,8 9-11 end", **settings))
        assert [verdict.check for verdict in opened if verdict.mark is Mark.FAIL], state
        unseen = judge(history_of("0-3 4-6,8 9-11 end", **settings))
        assert [verdict.check for verdict in unseen if verdict.mark is Mark.FAIL], state


@pytest.mark.parametrize(
    ("message", "names"),
    [("b.jsonl_is_cut", True), ("sample_7", True), ("key_00000007", True), ("line_1", False), ("a.jsonl", False)],
)
def test_an_error_may_name_the_file(message: str, names: bool) -> None:
    """The file of the damaged sample is as good as its id; any other file is not."""
    history = history_of(f"0-3 raise:ValueError:{message} 8-11 end", **stored({7: CutLine()}, {7: "damaged"}))
    assert (broken("error-names-sample", history) == []) is names


# --- whole runs ----------------------------------------------------------------------------------------------------------


def test_a_loader_known_good_passes_the_whole_suite() -> None:
    """The loader of JSON lines in plain Python passes every scenario of its kind."""
    with Suite(LINES, Options(workers=(0,)), trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    wrong = [v for v in report.verdicts if v.mark not in (Mark.PASS, Mark.NA)]
    assert [f"{v.trial} {v.check}: {v.mark.value}: {v.happened or v.reason}" for v in wrong] == []
    assert {trial.spec.scenario for trial in report.trials} == set(scenarios.names("jsonl"))
    assert {trial.spec.id for trial in report.trials} >= {"one-bad[workers=0,source=jsonl]"}


def test_a_selection_that_leaves_nothing_is_refused() -> None:
    """A scenario that does not apply to the loader's kinds of corpus is reported, and not ignored."""
    suite = Suite(LINES, Options(scenarios=("hung-read",)), trials.ROOT)
    with suite, pytest.raises(UserError, match="no selected scenario applies to jsonl"):
        suite.start()


def test_a_failing_trial_is_judged_and_replayed_without_its_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of a failing trial is complete: it is judged again as it was, and run again on a corpus that is made again."""
    liar = "fixtures.loaders.liars_disk:rest_of_file_lost"
    options = Options(workers=(0,), ranks=(1,), scenarios=("one-bad",), keep=tmp_path)
    with Suite(liar, options, trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    (folder,) = {trial.folder for trial in report.trials}
    assert folder is not None
    assert not os.path.exists(TrialSpec.read(folder / "trial.json").root or "")
    for again, history in (judge_folder(folder), replay(folder)):
        blamed = [v for v in again.verdicts if v.mark is Mark.FAIL and not v.cause]
        assert [(v.check, v.witnesses) for v in blamed] == [("loss-factor", (7,))]
        assert "the rest of data/part-00001.jsonl" in blamed[0].happened
        assert blamed[0].diagnosis is not None
        assert blamed[0].diagnosis.id == "file-left-at-first-error"
        assert len(history.of(Kind.GOT))
    corpus = tmp_path / "corpus"
    assert cli._run(["replay", str(folder), "--keep-corpus", str(corpus)]) == 1
    assert f"corpus kept: badbatch corpus show {corpus}" in capsys.readouterr().out
    assert [str(change) for change in verify(str(corpus))] == []
    record = next(record for record in read_samples(str(corpus)) if record.id == 7)
    assert record.state.value == "damaged" and record.path == blamed[0].files[0][1] and (corpus / record.path).is_file()
    assert "add --keep-corpus DIR" in terminal.render(report)
    assert cli._run(["replay", str(folder), "--keep-corpus", str(corpus)]) == 2
    assert "is not empty: give a new folder for the corpus" in capsys.readouterr().err


def test_a_trial_in_memory_has_no_corpus_to_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """replay --keep-corpus of a trial without a corpus is refused in one line."""
    trial = tmp_path / "trial.json"
    history_of("0-3 end").spec.write(trial)
    assert cli._run(["replay", str(trial), "--keep-corpus", str(tmp_path / "corpus")]) == 2
    assert "reads no corpus" in capsys.readouterr().err


def test_two_trials_with_slow_pipes_do_not_rob_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own pipes, which deliver the whole picture, late, and are removed with the trial.

    The process that schedules the trials neither makes their corpora nor feeds their pipes: other trials would wait for it.
    """
    pytest.importorskip("torch")
    loader = "fixtures.pipelines.pillow_folder:raising"
    specs = [
        trials.question(loader, "slow-read", Topology(workers), "imagefolder", timeout_s=20.0) for workers in (1, 2)
    ]
    for module, name in ((make, "make"), (pipes, "feeding")):
        monkeypatch.setattr(module, name, lambda *given, **more: pytest.fail("in the process that schedules the trials"))
    judged = trials.put(specs, tmp_path)
    assert [line for trial in judged.values() for line in trial.unexplained] == []
    for trial in judged.values():
        read = trial.history.of(Kind.READ)
        (begun,) = read["time"][read["sample"] == 5]
        (over,) = trial.history.of(Kind.READ_DONE)["time"][trial.history.of(Kind.READ_DONE)["sample"] == 5]
        assert (over - begun) / 1e9 > 0.2
        assert not (Path(trial.history.folder or "") / "corpus").exists()
