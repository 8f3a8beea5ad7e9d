"""Known failures: how they are written, what they excuse, and when they are stale."""

from __future__ import annotations

import dataclasses
import fnmatch
from pathlib import Path
from typing import Any

import example_report
import pytest
from badbatch.conformance import known
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.conformance.known import Known
from badbatch.conformance.report import files
from badbatch.conformance.report.formats import report_formats
from badbatch.harness.errors import UserError
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.trial.spec import Topology
from history_dsl import history_of

_TWO = Topology(workers=2)


def verdict(check: str = "no-lost-batches", mark: Mark = Mark.FAIL, **fields: Any) -> Verdict:
    """A verdict on the trial one-bad[workers=2] of a loader called pkg:load, unless set otherwise."""
    defaults: dict[str, Any] = {"loader": "pkg:load", "scenario": "one-bad", "source": "map", "topology": _TWO}
    return Verdict(**{**defaults, **fields}, check=check, mark=mark)


def entry(**fields: Any) -> Known:
    """An entry on the verdict above."""
    defaults: dict[str, Any] = {"check": "no-lost-batches", "scenario": "one-bad", "reason": "it is so", "where": "k.toml, entry 1"}
    return Known(**{**defaults, **fields})


def written(folder: Path, text: str) -> Path:
    """A known file with this text."""
    path = folder / "k.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_declared_failure_becomes_known_with_its_reason() -> None:
    """A failure with an entry is marked known, and carries the entry's reason and link."""
    (marked,), stale = known.apply([verdict()], [entry(link="https://issues/1")])
    assert (marked.mark, marked.reason) == (Mark.KNOWN, "it is so (https://issues/1)")
    assert stale == []


@pytest.mark.parametrize(
    ("field", "value", "excuses"),
    [
        ("check", "no-lost-batches", True),
        ("check", "no-*", True),
        ("check", "finite-epoch", False),
        ("scenario", "one-*", True),
        ("scenario", "first-bad", False),
        ("topology", "workers=2", True),
        ("topology", "workers=[1-9]*", True),
        ("topology", "workers=0", False),
        ("topology", "workers=2,ranks=2", False),
        ("source", "map", True),
        ("source", "*stream", False),
        ("loader", "pkg:*", True),
        ("loader", "other:*", False),
    ],
)
def test_an_entry_excuses_what_all_its_globs_match(field: str, value: str, excuses: bool) -> None:
    """Every field of an entry narrows what it excuses."""
    (marked,), _ = known.apply([verdict()], [entry(**{field: value})])
    assert (marked.mark is Mark.KNOWN) is excuses


def test_a_topology_with_a_start_method_is_matched_as_it_is_written() -> None:
    """The glob is put over the topology as trial ids show it, start method and all."""
    trial = verdict(topology=Topology(2, 2, "spawn"))
    assert entry(topology="workers=2,ranks=2,spawn").excuses(trial)
    assert not entry(topology="workers=2,ranks=2").excuses(trial)


def test_what_follows_from_a_known_failure_is_known_with_it() -> None:
    """A consequence, and a consequence of that, become known with their cause, and say so."""
    verdicts = [
        verdict(),
        verdict("contract-kept", cause="no-lost-batches"),
        verdict("ranks-in-step", cause="contract-kept"),
        verdict("error-kept"),
    ]
    marked, _ = known.apply(verdicts, [entry()])
    assert [v.mark for v in marked] == [Mark.KNOWN, Mark.KNOWN, Mark.KNOWN, Mark.FAIL]
    assert marked[2].reason == "follows from no-lost-batches: it is so"


def test_a_consequence_in_another_trial_stays_a_failure() -> None:
    """A known failure excuses nothing outside its own trial."""
    other = verdict("contract-kept", cause="no-lost-batches", scenario="first-bad")
    _, marked = known.apply([verdict(), other], [entry()])[0]
    assert marked.mark is Mark.FAIL


def test_what_a_known_hang_cut_short_is_known_with_it() -> None:
    """Where a trial was cut because the epoch never ended, and that is known, nothing in it is left inconclusive."""
    history = history_of("w0:read0-3 0-3 w1:read4 w1:fault5 ask stalled", workers=2, samples=16, plan={5: Segfault()}, scenario="segfault")
    found = judge(history)
    assert {v.mark for v in found} >= {Mark.FAIL, Mark.INCONCLUSIVE}
    marked, stale = known.apply(found, [entry(check="finite-epoch", scenario="segfault")])
    assert {v.mark for v in marked} <= {Mark.KNOWN, Mark.PASS, Mark.NA}
    assert stale == []


def test_what_a_known_closing_without_end_cut_short_is_known_with_it() -> None:
    """Where a trial was cut because closing never ended, and that is known, nothing in it is left inconclusive."""
    found = judge(history_of("0-3 4-7 8-11 end closing +20s stalled"))
    marked, _ = known.apply(found, [entry(check="no-leftovers", scenario="clean")])
    assert {v.mark for v in marked} <= {Mark.KNOWN, Mark.PASS, Mark.NA}


def test_what_is_inconclusive_for_another_reason_stays_so() -> None:
    """A verdict that is inconclusive by itself is not excused by its neighbour."""
    marked, _ = known.apply([verdict(), verdict("error-kept", Mark.INCONCLUSIVE)], [entry()])
    assert [v.mark for v in marked] == [Mark.KNOWN, Mark.INCONCLUSIVE]


@pytest.mark.parametrize(
    ("marks", "flaky", "stale"),
    [
        ((Mark.PASS,), False, True),
        ((Mark.PASS, Mark.PASS), False, True),
        ((Mark.PASS, Mark.FAIL), False, False),
        ((Mark.PASS, Mark.INCONCLUSIVE), False, False),
        ((Mark.PASS, Mark.NA), False, True),
        ((Mark.PASS,), True, False),
    ],
)
def test_an_entry_whose_check_holds_everywhere_is_stale(marks: tuple[Mark, ...], flaky: bool, stale: bool) -> None:
    """An entry is stale if its check holds in every trial that it applies to, unless it is declared flaky."""
    verdicts = [verdict(mark=mark, topology=Topology(workers)) for workers, mark in enumerate(marks)]
    marked, texts = known.apply(verdicts, [entry(flaky=flaky)])
    assert [v.mark for v in marked] == [Mark.KNOWN if mark is Mark.FAIL else mark for mark in marks]
    assert texts == (["k.toml, entry 1: no-lost-batches in one-bad[*]: the check holds now; remove the entry"] if stale else [])


def test_an_entry_that_matches_nothing_in_trials_that_were_run_is_stale() -> None:
    """An entry for a check that does not apply to its trials is stale, also a flaky one."""
    verdicts = [verdict(), verdict("honest-length", Mark.PASS, scenario="clean")]
    _, (text,) = known.apply(verdicts, [entry(check="honest-length", flaky=True)])
    assert text.startswith("k.toml, entry 1: honest-length in one-bad[*]: matches nothing")


@pytest.mark.parametrize(
    "unjudged",
    [
        entry(scenario="first-bad"),
        entry(topology="workers=4*"),
        entry(source="stream"),
        entry(loader="other:load"),
        entry(check="honest-length"),
        entry(topology="workers=0"),
    ],
)
def test_an_entry_on_what_was_not_run_is_not_judged(unjudged: Known) -> None:
    """A run of some scenarios, topologies, loaders or checks says nothing on entries about others."""
    not_run = verdict(mark=Mark.NA, topology=Topology(0), reason="the loader declares workers=(2,)")
    assert known.apply([verdict(), not_run], [unjudged])[1] == []


def test_the_first_entry_that_matches_gives_the_reason() -> None:
    """Of two entries on one failure, the first gives the reason; neither is stale."""
    (marked,), stale = known.apply([verdict()], [entry(reason="narrow"), entry(reason="broad", check="*")])
    assert (marked.reason, stale) == ("narrow", [])


def test_a_file_is_read_with_lists_and_defaults(tmp_path: Path) -> None:
    """Lists become one entry for each pair, and the file's loader applies to entries without their own."""
    text = """
        loader = "pkg:*"
        [[known]]
        check = "finite-epoch"
        scenario = ["killed", "exit"]
        topology = "workers=2"
        reason = "it hangs"
        flaky = true
        [[known]]
        check = ["no-lost-batches", "no-duplicates"]
        scenario = "shuffled"
        loader = "other:*"
        source = "stream"
        reason = "it is not split"
        link = "https://issues/2"
    """
    found = known.load(written(tmp_path, text))
    assert [(e.check, e.scenario, e.loader) for e in found] == [
        ("finite-epoch", "killed", "pkg:*"),
        ("finite-epoch", "exit", "pkg:*"),
        ("no-lost-batches", "shuffled", "other:*"),
        ("no-duplicates", "shuffled", "other:*"),
    ]
    assert found[1] == Known(
        "finite-epoch", "exit", "workers=2", loader="pkg:*", reason="it hangs", flaky=True, where="k.toml, entry 1"
    )
    assert str(found[2]) == "k.toml, entry 2: no-lost-batches in shuffled[*,source=stream,loader=other:*]"


def test_the_old_name_of_flaky_is_read(tmp_path: Path) -> None:
    """A known file that says unsteady, as version 0.1 did, means flaky; with both names in one entry it is refused."""
    text = "[[known]]\ncheck = 'finite-epoch'\nscenario = 'exit'\nreason = 'r'\nunsteady = true\n"
    assert [e.flaky for e in known.load(written(tmp_path, text))] == [True]
    with pytest.raises(UserError, match="entry 1: unknown key 'unsteady'"):
        known.load(written(tmp_path, text + "flaky = true\n"))


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    """Every wrong name and value is reported in its own line, with file, entry and the nearest match."""
    path = written(
        tmp_path,
        """
        lodaer = "x"
        [[known]]
        check = "no-lost-batch"
        scenario = "one-bad"
        reason = "r"
        [[known]]
        check = "no-duplicates"
        scenario = ["one-bad", "first-bat"]
        topologie = "workers=2"
        [[known]]
        check = "no-duplicates"
        scenario = "clean"
        topology = "worker=2"
        source = "strem"
        reason = ""
        flaky = "yes"
        """,
    )
    with pytest.raises(UserError) as caught:
        known.load(path)
    assert str(caught.value).splitlines() == [
        f"{path}: unknown key 'lodaer'; did you mean 'loader'?",
        f"{path}, entry 1: unknown check 'no-lost-batch'; did you mean 'no-lost-batches'?",
        f"{path}, entry 2: unknown key 'topologie'; did you mean 'topology'?",
        f"{path}, entry 2: reason is missing",
        f"{path}, entry 2: unknown scenario 'first-bat'; did you mean 'first-bad'?",
        f"{path}, entry 3: topology = 'worker=2': 'worker=2' is no part of one, like \"workers=2,ranks=2,spawn\"; "
        "did you mean 'workers='?",
        f"{path}, entry 3: unknown source 'strem'; did you mean 'stream'?",
        f"{path}, entry 3: reason = '': must be a text",
        f"{path}, entry 3: flaky = 'yes': must be true or false",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[known]\n", "is not TOML"),
        ("[known]\ncheck = 'x'\n", r"written as \[\[known\]\]"),
        ("known = 3\n", r"written as \[\[known\]\]"),
        ("[[known]]\ncheck = []\nscenario = 'clean'\nreason = 'r'\n", r"check = \[\]: must be a text, or a list"),
        ("[[known]]\ncheck = 'no-*'\nscenario = 'nothing-*'\nreason = 'r'\n", "unknown scenario 'nothing-"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A file that is not TOML, or not of known failures, is refused with a reason."""
    with pytest.raises(UserError, match=message):
        known.load(written(tmp_path, text))


def test_a_file_is_found_by_its_path_or_by_a_name_that_comes_with_badbatch(tmp_path: Path) -> None:
    """A path is used as given, a bare name is one of the files of badbatch, and an unknown one names the nearest."""
    path = written(tmp_path, "")
    assert known.find(str(path)) == path
    assert known.load(path) == []
    assert known.find("torch").name == "torch.toml"
    with pytest.raises(UserError, match="unknown known file 'torhc'; did you mean 'torch'"):
        known.find("torhc")
    with pytest.raises(UserError, match="there is no known file"):
        known.find(str(tmp_path / "absent.toml"))
    with pytest.raises(UserError, match="cannot read the known file"):
        known.load(tmp_path)


def test_the_files_of_badbatch_are_valid() -> None:
    """Each entry of torch.toml names checks and scenarios that exist, is about torch's loader, and gives its own reason."""
    entries = known.load(known.find("torch"))
    assert entries
    assert all(fnmatch.fnmatchcase("torch.utils.data:DataLoader", e.loader) for e in entries)
    assert not any(fnmatch.fnmatchcase("pkg:load", e.loader) for e in entries)
    pairs = [dataclasses.replace(e, reason="", link="", where="", flaky=False) for e in entries]
    assert len(set(pairs)) == len(pairs), "two entries speak of the same"


def test_a_file_written_from_a_run_excuses_that_run_once_its_reasons_are_filled_in(tmp_path: Path) -> None:
    """Written, filled in and read, it turns every failure of the same run into a known one, and none of its entries is stale."""
    report = example_report.report()
    path = tmp_path / "new.toml"
    files.write("write-known", path, [report])
    with pytest.raises(UserError, match=r"^[^\n]*new.toml: \d+ of \d+ failures still have the reason \"FILL IN[^\n]*$"):
        known.load(path)
    path.write_text(path.read_text("utf-8").replace(known.PLACEHOLDER, "so it is"), "utf-8")
    marked, stale = known.apply(report.verdicts, known.load(path))
    assert {v.mark for v in marked} == {Mark.PASS, Mark.NA, Mark.KNOWN, Mark.INCONCLUSIVE}
    assert stale == []


def test_a_file_written_from_a_run_excuses_nothing_else(tmp_path: Path) -> None:
    """Its entries cover the trials that failed, and none that passed."""
    shapes = (Topology(0), Topology(2), Topology(2, 2))
    verdicts = [
        verdict(check, Mark.FAIL if topology in failing else Mark.PASS, topology=topology, scenario=scenario)
        for check, scenario, failing in (
            ("no-duplicates", "clean", shapes),
            ("no-lost-batches", "one-bad", shapes[1:]),
            ("honest-length", "one-bad", shapes[2:]),
            ("honest-length", "clean", (shapes[0], shapes[2])),
        )
        for topology in shapes
    ]
    path = tmp_path / "new.toml"
    report = dataclasses.replace(example_report.report(), loader="pkg:load", verdicts=tuple(verdicts))
    files.write("write-known", path, [report])
    path.write_text(path.read_text("utf-8").replace(known.PLACEHOLDER, "so it is"), "utf-8")
    entries = known.load(path)
    assert {(e.check, e.scenario, e.topology) for e in entries} == {
        ("no-duplicates", "clean", "*"),
        ("no-lost-batches", "one-bad", "workers=[1-9]*"),
        ("honest-length", "one-bad", "workers=2,ranks=2"),
        ("honest-length", "clean", "workers=0"),
        ("honest-length", "clean", "workers=2,ranks=2"),
    }
    everything_failed = [dataclasses.replace(v, mark=Mark.FAIL) for v in verdicts]
    marked, _ = known.apply(everything_failed, entries)
    assert [m.mark is Mark.KNOWN for m in marked] == [v.mark is Mark.FAIL for v in verdicts]


def test_a_known_file_is_never_overwritten(tmp_path: Path) -> None:
    """A file that exists is refused before the run, and stays unchanged."""
    path = written(tmp_path, "")
    with pytest.raises(UserError, match="it already exists; give the name of a new file"):
        files.check_target(path, format=report_formats()["write-known"])
    with pytest.raises(UserError, match="it already exists"):
        files.write("write-known", path, [example_report.report()])
    assert path.read_text() == ""
