"""Reports say the same of a live and of a stored run, in every format, and let nothing through that a loader says."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import os
import re
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.conformance.report import digest, files, jsonfile, junit, matrix, terminal
from badbatch.conformance.report import html as htmlfile
from badbatch.conformance.report.broken import broken_promises
from badbatch.conformance.report.model import Report
from badbatch.conformance.report.printable import printable
from badbatch.harness.errors import UserError
from badbatch.harness.exit_codes import ExitCode
from badbatch.harness.trial.spec import Topology
from example_report import ALONE, RANKS, WORKERS, report, small_report, trial, verdict

HERE = Path(__file__).parent
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order; keeps text and the tags that were seen."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def with_verdicts(*verdicts: Verdict, **more: object) -> Report:
    values = {"stale_known": (), "notes": (), "trials": (), **more}
    return dataclasses.replace(report(), verdicts=verdicts, **values)


def stored(found: Report) -> Report:
    return Report.from_json(json.loads(json.dumps(found.to_json())))


def test_text_of_the_example() -> None:
    """The summary of a fixed set of verdicts is the text that was agreed on."""
    expected = (HERE / "expected" / "report.txt").read_text(encoding="utf-8")
    assert terminal.render(report()) + "\n" == expected


@pytest.mark.parametrize("render", [terminal.render, lambda r: htmlfile.dumps([r]), lambda r: junit.dumps([r])])
def test_live_is_stored(render: object) -> None:
    """A run that was written as JSON and read again prints as it did live."""
    assert render(stored(report())) == render(report())  # type: ignore[operator]


def test_checks_that_are_flaky_in_the_same_trials_stand_together() -> None:
    """A trial that was cut in one of its runs makes many verdicts flaky: they are one line."""
    several = [verdict(check, Mark.INCONCLUSIVE, "exit", WORKERS, reason="cut", flaky=(0, 2)) for check in ("a", "b", "c")]
    failed = verdict("d", Mark.FAIL, "exit", WORKERS, happened="h", flaky=(1, 2))
    found = digest.digest(with_verdicts(*several, failed)).flaky
    assert [(reason.check, reason.text) for reason in found] == [
        ("d", "failed in 1 of 2 runs"), ("a, b, c", "inconclusive in some of 2 runs")
    ]


def test_what_shows_in_each_run_is_fixed_before_what_is_flaky() -> None:
    """Of two defects that break one promise, the one to fix first is the one that shows in each run, though it loses less."""
    always = verdict("a", Mark.FAIL, "clean", ALONE, happened="one thing", lost=(1,))
    rarely = verdict("a", Mark.FAIL, "tiny", ALONE, happened="another", lost=(1, 2, 3), flaky=(1, 2))
    (first,) = digest.digest(with_verdicts(rarely, always)).first
    assert (first.worst.verdict.happened, first.lost, first.trials) == ("one thing", 3, 2)
    assert "flaky" not in first.extent


def test_json_round_trip() -> None:
    """A JSON report that is read and written again is the same."""
    assert stored(report()).to_json() == report().to_json()


def test_json_has_the_fields_of_schema_1() -> None:
    """Programs that know schema 1 find every field of it, with its type."""
    data = small_report().to_json()
    assert data["schema"] == 1
    assert data["contract"]["inferred"] == ["after_error", "tail"]
    trial, told = data["trials"][1], data["verdicts"][1]
    assert {"id", "scenario", "topology", "seconds", "ended", "delivered", "raised", "skipped"} <= trial.keys()
    assert trial["topology"] == {"workers": 2, "ranks": 1, "start_method": None, "persistent": False}
    needed = {
        "scenario",
        "topology",
        "check",
        "verdict",
        "promised",
        "happened",
        "lost",
        "duplicated",
        "diagnosis",
        "replay",
    }
    assert needed | {"reason", "unsteady"} <= told.keys()
    assert told["diagnosis"].keys() == {"id", "text"}
    assert data["summary"]["fail"] == 2
    assert report().to_json()["summary"]["unsteady"] == report().to_json()["summary"]["flaky"] == 2


def test_json_without_our_additions_is_read() -> None:
    """A report with only the fields of schema 1 can be read and printed."""
    data = small_report().to_json()
    for name in ("contracts", "isolation", "stale_known", "notes", "run", "card"):
        del data[name]
    for entry in data["trials"]:
        for name in ("source", "expected", "folder", "observed"):
            del entry[name]
    for entry in data["verdicts"]:
        for name in ("source", "witnesses", "share", "cause", "flaky", "unsteady"):
            del entry[name]
    assert "one-bad" in terminal.render(Report.from_json(data))


def test_json_with_the_old_name_of_flaky_is_read() -> None:
    """A report that was written before "unsteady" became "flaky" shows the same as one of today."""
    data = report().to_json()
    for entry in data["verdicts"]:
        del entry["flaky"]
    assert terminal.render(Report.from_json(data)) == terminal.render(report())


def test_flaky_verdicts_are_listed_by_name() -> None:
    """Each verdict that was not the same in each run is named with its trial, also if it is not a failure."""
    doubtful = verdict("fresh-epoch", Mark.INCONCLUSIVE, "many-epochs", RANKS, reason="cut", flaky=(0, 3))
    many = [verdict("no-duplicates", Mark.FAIL, f"scenario-{n}", ALONE, happened="h", flaky=(1, 2)) for n in range(12)]
    found = with_verdicts(doubtful, *many)
    for text in (terminal.render(found), "".join(Page(htmlfile.dumps([found])).words)):
        assert "fresh-epoch: inconclusive in some of 3 runs" in " ".join(text.split())
        assert all(name in text for name in ("many-epochs", *(v.scenario for v in many)))
        assert "no-duplicates: failed in 1 of 2 runs" in " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "contains no badbatch report"),
        ("3", "contains no badbatch report"),
        ('{"schema": 2}', "not a badbatch report of schema 1"),
        ('{"schema": 1}', "is damaged: Object missing required field `loader`"),
    ],
)
def test_bad_report_files(tmp_path: Path, text: str, said: str) -> None:
    """A file that contains no report is refused in one line that names the file."""
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        jsonfile.read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_reports_of_several_loaders(tmp_path: Path) -> None:
    """One file contains the reports of several loaders, as a list."""
    second = dataclasses.replace(report(), loader="other:make")
    files.write("json", Path("both.json"), [report(), second], tmp_path)
    assert [found.loader for found in jsonfile.read(tmp_path / "both.json")] == ["mypkg.data:make", "other:make"]


def test_documented_example() -> None:
    """The example in the documentation of the JSON report is what is written."""
    page = (HERE.parent / "docs" / "report-schema.md").read_text(encoding="utf-8")
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert json.loads(shown.group(1)) == small_report().to_json()


def test_every_field_is_documented() -> None:
    """Each field of the JSON report is in its documentation."""
    page = (HERE.parent / "docs" / "report-schema.md").read_text(encoding="utf-8")
    data = report().to_json()
    trial = data["trials"][0]
    parts = (data["run"], data["card"][0], data["contract"], trial, trial["observed"], data["verdicts"][0], data["summary"])
    names = {*data, *(name for part in parts for name in part)}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_colour_only_adds_escapes() -> None:
    """With colour the text is the same once its escape sequences are taken away."""
    coloured = terminal.render(report(), colour=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == terminal.render(report()).splitlines()


def test_what_a_loader_says_cannot_move_the_cursor() -> None:
    """Control characters and halves of letters in a message are spelled out."""
    text = terminal.render(report())
    assert "\\x1b[31mred\\x07" in text
    assert not set(text) & {"\x1b", "\x07", "\udcff", "\r"}


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_width_is_kept(width: int) -> None:
    """No line is wider than the terminal, but for headings, commands and totals, which are not torn apart."""
    lines = terminal.render(report(), width=width).splitlines()
    wide = [line for line in lines if len(line) > width and not re.search(r"^  again|(FAIL|FLAKY)$", line)]
    assert wide in ([], [lines[-1]])


def test_matrix_falls_into_blocks() -> None:
    """Columns that do not fit side by side are below each other, one source at a time, and none is left out."""
    several = [
        verdict("no-duplicates", Mark.PASS, "clean", Topology(workers, ranks, "spawn"), source)
        for source in ("map", "stream", "sharded_stream")
        for ranks in (1, 2)
        for workers in (1, 2, 4)
    ]
    lines = terminal.render(with_verdicts(*several), width=60).splitlines()
    assert sum(line.split().count(".") for line in lines if line.startswith("  clean")) == len(several)
    assert [line.split()[1:] for line in lines if line.startswith("  source")] == [
        ["map"],
        ["stream"],
        ["sharded_stream"],
    ]


@pytest.mark.parametrize(
    ("marks", "flaky", "sign"),
    [
        ((Mark.PASS, Mark.FAIL, Mark.INCONCLUSIVE), None, "F"),
        ((Mark.PASS, Mark.FAIL, Mark.INCONCLUSIVE), (1, 2), "~"),
        ((Mark.PASS, Mark.INCONCLUSIVE, Mark.KNOWN), None, "?"),
        ((Mark.PASS, Mark.KNOWN, Mark.NA), None, "k"),
        ((Mark.PASS, Mark.NA), None, "."),
        ((Mark.NA,), None, "-"),
    ],
)
def test_a_cell_is_the_worst_of_its_trial(marks: tuple[Mark, ...], flaky: tuple[int, int] | None, sign: str) -> None:
    """The sign of a cell is that of the worst verdict; a known failure is not hidden by passes in the same cell."""
    several = [
        verdict(f"check-{number}", mark, "clean", ALONE, flaky=flaky if mark is Mark.FAIL else None)
        for number, mark in enumerate(marks)
    ]
    line = next(line for line in terminal.render(with_verdicts(*several)).splitlines() if line.startswith("  clean"))
    assert line.split() == ["clean", sign]


def test_a_defect_is_shown_once() -> None:
    """Failures of one check with one diagnosis are one, whatever scenario, topology and numbers they have."""
    found = digest.digest(report())
    told = [(group.verdict.check, group.trials) for group in found.broken]
    assert told == [("no-lost-batches", 4), ("error-names-sample", 2), ("finite-epoch", 1), ("no-duplicates", 1)]


def test_the_distinct_promises_broken_are_listed_at_the_end_the_most_samples_lost_first() -> None:
    """What is to be fixed first: one entry a promise, by the samples that it lost, also those of a trial that was cut."""
    first = digest.digest(report()).first
    told = [(f.worst.verdict.check, f.lost, f.trials) for f in first]
    assert told == [
        ("finite-epoch", 35, 1),  # stalled after 4 of 39
        ("no-lost-batches", 12, 4),
        ("error-names-sample", 0, 2),
        ("no-duplicates", 0, 1),
    ]
    text = terminal.render(report())
    at = text.index("Fix these first")
    assert at > text.index("Not applicable") and text.index("4 promises broken") > at
    assert "up to 12 samples lost, in 4 trials" in text[at:] and "badbatch replay .badbatch/hung-read-w2" in text[at:]


def test_what_a_consequence_lost_counts_for_its_cause() -> None:
    """The samples of a failure that follows from another are lost by that other."""
    cause = verdict("no-duplicates", Mark.FAIL, "clean", ALONE, happened="h")
    follows = verdict("no-lost-batches", Mark.FAIL, "clean", ALONE, happened="g", lost=(1, 2), cause="no-duplicates")
    assert [f.lost for f in digest.digest(with_verdicts(cause, follows)).first] == [2]


def test_at_most_ten_promises_are_to_be_fixed_first() -> None:
    """Of more than ten broken promises ten are listed, and the rest is counted; a single one needs no list."""
    several = [
        verdict(f"check-{n:02}", Mark.FAIL, "clean", ALONE, happened="h", lost=tuple(range(n))) for n in range(13)
    ]
    text = terminal.render(with_verdicts(*several))
    listed = text[text.index("Fix these first") :]
    assert [n for n in range(13) if f"check-{n:02}" in listed] == list(range(3, 13))
    assert "and 3 more promises broken" in listed
    assert "Fix these first" not in terminal.render(with_verdicts(several[0]))


def test_different_happenings_are_different_defects() -> None:
    """Without a diagnosis, what happened distinguishes defects; numbers, ranks and workers do not."""
    texts = ("epoch 0, rank 1: call 3 of worker 0", "epoch 1: call 17 of worker 1 of rank 0", "epoch 0: something else")
    several = [
        verdict("finite-epoch", Mark.FAIL, scenario, WORKERS, promised=f"within {number} calls", happened=text)
        for number, (scenario, text) in enumerate(zip(("clean", "tiny", "nan"), texts, strict=True))
    ]
    assert [group.trials for group in digest.digest(with_verdicts(*several)).broken] == [2, 1]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("left 2 files: /tmp/badbatch-a/x.sock", "left 1 file: /tmp/badbatch-b/y.sock", True),
        ("it says only: cannot read 'art/a.jpg'", "it says only: cannot read 'health/b.jpg'", True),
        ("it says only: cannot read a.jpg", "it says only: cannot read b.png", True),
        ("it says only: <Queue at 0x7f3a>", "it says only: <Queue at 0x9c01d>", True),
        ("samples 5, 8-11 and 3 more are gone", "samples 7 are gone", True),
        ("1 batch before the last was short", "3 batches before the last were short", True),
        ("it says only: RuntimeError", "it says only: ValueError", False),
        ("it says only: torch.utils.data failed", "it says only: torch.nn.modules failed", False),
        ("the consumer got RuntimeError (1)", "the consumer got OSError (1)", False),
    ],
)
def test_paths_counts_and_addresses_do_not_tell_defects_apart(one: str, other: str, same: bool) -> None:
    """What differs from trial to trial, and says nothing of the cause, does not make a second defect of one."""
    several = [
        verdict("a", Mark.FAIL, scenario, WORKERS, promised="p", happened=text)
        for scenario, text in (("clean", one), ("tiny", other))
    ]
    assert len(digest.digest(with_verdicts(*several)).broken) == (1 if same else 2)


def test_consequences_stand_under_their_cause() -> None:
    """A failure that follows from another is named there, and shown nowhere else."""
    found = digest.digest(report())
    assert found.broken[0].follows == ("full-batches",)
    assert "full-batches" not in [group.verdict.check for group in found.broken]


def test_a_consequence_of_what_did_not_fail_is_shown_itself() -> None:
    """If the cause is known, or did not fail, its consequence is shown like any other failure."""
    known = verdict("no-lost-batches", Mark.KNOWN, "one-bad", WORKERS, reason="so it is")
    orphan = verdict("full-batches", Mark.FAIL, "one-bad", WORKERS, promised="a", happened="b", cause="no-lost-batches")
    assert [group.verdict.check for group in digest.digest(with_verdicts(known, orphan)).broken] == ["full-batches"]


def test_causes_in_a_circle_end() -> None:
    """Two failures that name each other as their cause are both shown."""
    one = verdict("a", Mark.FAIL, "clean", ALONE, promised="p", happened="h", cause="b")
    two = verdict("b", Mark.FAIL, "clean", ALONE, promised="p", happened="h", cause="a")
    assert [group.verdict.check for group in digest.digest(with_verdicts(one, two)).broken] == ["a", "b"]


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ((ALONE, WORKERS, RANKS), "(everywhere)"),
        ((WORKERS, RANKS), "(wherever there are workers)"),
        ((ALONE, RANKS), "(workers=0; workers=2,ranks=2)"),
    ],
)
def test_places_in_words(failing: tuple[Topology, ...], said: str) -> None:
    """Where a scenario failed is given in words if words fit exactly, and listed otherwise."""
    several = [
        verdict("a", Mark.FAIL if topology in failing else Mark.PASS, "clean", topology, promised="p", happened="h")
        for topology in (ALONE, WORKERS, RANKS)
    ]
    assert said in terminal.render(with_verdicts(*several))


@pytest.mark.parametrize(
    ("marks", "stale", "code"),
    [
        ((Mark.PASS, Mark.NA), (), ExitCode.KEPT),
        ((Mark.PASS, Mark.KNOWN), (), ExitCode.KEPT),
        ((Mark.PASS, Mark.INCONCLUSIVE), (), ExitCode.INCONCLUSIVE),
        ((Mark.FAIL, Mark.INCONCLUSIVE), (), ExitCode.BROKEN),
        ((Mark.PASS,), ("an entry",), ExitCode.BROKEN),
        ((Mark.NA,), (), ExitCode.INCONCLUSIVE),
        ((), (), ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_code(marks: tuple[Mark, ...], stale: tuple[str, ...], code: ExitCode) -> None:
    """The exit code is that of the worst verdict; a run without trials is not a pass, and a stale entry fails the run."""
    several = [verdict(f"check-{number}", mark, "clean", ALONE) for number, mark in enumerate(marks)]
    assert with_verdicts(*several, stale_known=stale).exit_code is code


def test_nothing_run() -> None:
    """A report without verdicts says so."""
    assert terminal.render(with_verdicts()).endswith("nothing was run: 0 passed")


def test_one_failure_in_five_parts() -> None:
    """A single verdict is shown as promised, happened, lost, likely, again, in this order."""
    failing = next(v for v in report().verdicts if v.check == "no-lost-batches" and v.mark is Mark.FAIL)
    lines = terminal.render_failure(failing).splitlines()
    assert lines[0].startswith("make · one-bad · workers=2 · no-lost-batches") and lines[0].endswith("FAIL")
    assert [line.split()[0] for line in lines[1:]] == ["promised", "happened", "lost", "likely", "again"]


def test_a_report_prints_as_a_summary_with_its_first_failures() -> None:
    """print(report) gives the conclusion, the totals, and the first failure of each broken promise, safe to print."""
    lines = str(report()).splitlines()
    assert lines[0].startswith("mypkg.data:make: 4 promises broken, in 8 of 17 trials: 10 failed, 2 inconclusive")
    assert lines[1].startswith("one bad sample: 1 error, then the epoch goes on; 15 of 39 good samples do not arrive")
    assert [line.split()[2] for line in lines if line.startswith("FAIL one-bad")] == ["no-lost-batches"]
    assert [line.split()[-1] for line in lines if line.startswith("FAIL ")][:4] == [
        "no-lost-batches", "error-names-sample", "no-duplicates", "finite-epoch"
    ]
    assert "  again    badbatch replay .badbatch/one-bad-w2-r1" in lines
    assert "and 6 more failed" in lines and lines[-1].startswith("FAIL known.toml, entry 2")
    assert len(str(report())) < 2500 and not set(str(report())) & {"\x1b", "\x07", "\udcff"}
    assert str(with_verdicts(verdict("a", Mark.PASS, "clean", ALONE))) == "mypkg.data:make: every promise kept: 1 passed"


def test_a_reports_repr_is_short_and_names_the_first_failures() -> None:
    """pytest shows a report in a failed assertion by its repr, and cuts what is longer than 240 letters."""
    assert len(repr(report())) <= 240
    assert repr(report()).startswith("<Report on mypkg.data:make: 10 failed, 2 inconclusive, 7 passed")
    assert "first failures: one-bad[workers=2] no-lost-batches, " in repr(report())
    assert repr(with_verdicts(verdict("a", Mark.PASS, "clean", ALONE))) == "<Report on mypkg.data:make: 1 passed>"


def test_every_format_says_how_the_report_came_about() -> None:
    """Date, version, samples, batch size and seed are in the text and on the page, the command on the page and in JSON."""
    page = " ".join("".join(Page(htmlfile.dumps([report()])).words).split())
    for text in (terminal.render(report()), page):
        assert "2026-01-31 12:00 UTC, badbatch 0.1.0, 40 samples in batches of 4" in text and "seed 7" in text
    assert "badbatch run mypkg.data:make --seed 7" in page
    assert report().to_json()["run"]["command"] == "badbatch run mypkg.data:make --seed 7"


def test_html_is_plain_and_closed() -> None:
    """The page is well formed, runs nothing, fetches nothing, and escapes what a loader says."""
    page = Page(htmlfile.dumps([report()]))
    assert page.open == []
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert not [value for name, value in page.attributes if name == "src" or name.startswith("on")]
    anchors = {value for name, value in page.attributes if name == "id"}
    links = [str(value) for name, value in page.attributes if name == "href"]
    inside = [link[1:] for link in links if link.startswith("#")]
    assert inside and set(inside) <= anchors
    assert {link for link in links if not link.startswith("#")} == {"https://example.org/1"}
    assert "<script>alert('x')</script>" in "".join(page.words)


def test_cells_lead_to_what_was_found() -> None:
    """Each cell that is not a pass is a link to the card or the line about its trial, and says which checks it is about."""
    found = digest.digest(report())
    cells = {(t.source, name, n): cell for t in matrix.tables(found) for name, row in t.rows for n, cell in enumerate(row)}
    assert cells["map", "one-bad", 1].target == "broken-1" == cells["map", "last-bad", 1].target
    assert cells["map", "one-bad", 1].words == "one-bad[workers=2]: fail: no-lost-batches, full-batches"
    assert (cells["map", "hung-read", 0].target, cells["map", "hung-read", 1].target) == ("na-1", "broken-3")
    assert (cells["map", "transient", 1].target, cells["map", "stop-iteration", 1].target) == ("inconclusive-1", "known-1")
    assert cells["stream", "shuffled", 2].target == "broken-4"
    assert {cell.kind for cell in cells.values() if not cell.target} == {"", "pass"}
    assert [t.source for t in matrix.tables(found)] == ["map", "stream"]


def test_two_reports_on_one_page_share_no_anchor() -> None:
    """Cells of the second loader lead to cards of the second loader."""
    page = Page(htmlfile.dumps([report(), dataclasses.replace(report(), loader="other:make")]))
    anchors = [value for name, value in page.attributes if name == "id"]
    assert len(set(anchors)) == len(anchors)
    assert {str(value)[1:] for name, value in page.attributes if name == "href" and str(value).startswith("#")} <= set(anchors)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://a.b/c?d=1&e=2.", 'see <a href="https://a.b/c?d=1&amp;e=2" rel="noreferrer">https://a.b/c?d=1&amp;e=2</a>.'),
        ("so it is (http://a.b)", 'so it is (<a href="http://a.b" rel="noreferrer">http://a.b</a>)'),
        ("<b> javascript:alert(1)", "&lt;b&gt; javascript:alert(1)"),
        ('https://a.b/"onload="x', '<a href="https://a.b/" rel="noreferrer">https://a.b/</a>&quot;onload=&quot;x'),
    ],
)
def test_addresses_are_links_and_nothing_else_is(text: str, shown: str) -> None:
    """A web address in a text becomes a link without the full stop after it; everything is escaped."""
    assert htmlfile.linked(text) == shown


def test_files_of_samples_on_disk_are_named() -> None:
    """A failure over a corpus names in text and page the files of its first samples, and can be written as JSON and read back."""
    named = verdict("oddities-kept", Mark.FAIL, "oddities", ALONE, "imagefolder", happened="h", lost=(32,), files=((32, "art/a.gif"),),
                    replay="badbatch replay x")
    found = with_verdicts(named)
    assert "  files      32 art/a.gif" in terminal.render(found).splitlines()
    words = " ".join("".join(Page(htmlfile.dumps([found])).words).split())
    assert "32 art/a.gif" in words and "add --keep-corpus DIR" in words
    assert stored(found).verdicts == found.verdicts


def test_html_says_what_the_text_says() -> None:
    """Every broken promise, reason and entry of the text is on the page as well."""
    words = " ".join("".join(Page(htmlfile.dumps([report()])).words).split())
    found = digest.digest(report())
    for group in found.broken:
        assert group.verdict.promised in words
        assert printable(group.verdict.happened) in words
        assert all(place in words for place in (*group.also, *group.sometimes))
    for reason in (*found.known, *found.inconclusive, *found.not_applicable):
        assert reason.text in words
    assert report().stale_known[0] in words and found.totals in words


def test_the_page_shows_what_was_stored_and_what_arrived(tmp_path: Path) -> None:
    """A card over a picture corpus has the pictures that its trial kept, inside the page; without a folder it has none."""
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    for name in ("7-stored.png", "7-arrived.png", "9-stored.png", "3-stored.png", "-1-arrived.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / "pictures" / name)
    failed = verdict("oddities-kept", Mark.FAIL, "oddities", ALONE, "imagefolder", happened="h", lost=(7, 9))
    kept = dataclasses.replace(trial([failed], 4), folder=tmp_path)
    text = htmlfile.dumps([with_verdicts(failed, trials=(kept,))])
    page = Page(text)
    pictures = [str(value) for name, value in page.attributes if name == "src"]
    assert page.open == [] and len(pictures) == 4 and all(p.startswith("data:image/png;base64,") for p in pictures)
    words = " ".join("".join(page.words).split())
    assert "sample 7 stored arrived sample 9 stored arrived no picture arrived a picture without a readable id arrived" in words
    assert "<img" not in htmlfile.dumps([with_verdicts(failed, trials=(dataclasses.replace(kept, folder=None),))])


def test_junit() -> None:
    """JUnit contains one case for each verdict, with its properties; an inconclusive one is an error, not a pass."""
    root = ElementTree.fromstring(junit.dumps([report()]))
    cases = root.findall(".//testcase")
    assert len(cases) == len(report().verdicts)
    suite = root.find("testsuite")
    assert suite is not None
    assert [suite.get(name) for name in ("failures", "errors", "skipped")] == ["10", "2", "9"]
    failing = next(case for case in cases if case.find("failure") is not None)
    properties = {p.get("name"): p.get("value") for p in failing.findall(".//property")}
    assert properties["topology"] == "workers=2" and properties["verdict"] == "fail"
    assert properties["replay"] == "badbatch replay .badbatch/one-bad-w2-r1"


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    """A report replaces an older file in one step, with the usual permissions, and leaves no other file."""
    (tmp_path / "report.html").write_text("old")
    files.write("html", Path("report.html"), [report()], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o666 & ~mask


def test_targets_are_checked(tmp_path: Path) -> None:
    """A report that could not be written is found out beforehand: its folder is missing, or it is one."""
    with pytest.raises(UserError, match="there is no folder"):
        files.check_target(tmp_path / "missing" / "report.json")
    with pytest.raises(UserError, match="it is a folder"):
        files.check_target(tmp_path)
    files.check_target(Path("-"))


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """A report that is written to - goes to standard output, and is whole."""
    files.write("json", Path("-"), [report()])
    assert Report.from_json(json.loads(capsys.readouterr().out)).to_json() == report().to_json()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("cannot open /data/a/1.jpg", "cannot open /mnt/b/77.png", True),
        ("cannot open 'a/1.jpg', 'a/2.jpg'", "cannot open 'a/1.jpg'", True),
        ("lock 0x7f3a1c held by job 1f3c9ab2e7", "lock 0x55d0 held by job 77ab01cd22", True),
        ("3f2b8c1e-77aa-4b2e-9c1d-0a1b2c3d4e5f is gone", "00000000-77aa-4b2e-9c1d-0a1b2c3d4e5f is gone", True),
        ("1 temporary file more: cache-zq9vfbq9", "3 temporary files more: cache-a81mmw2p", True),
        ("loss 1e-05 after 3 steps", "loss 0.25 after 1 step", True),
        ("3 good samples never arrived after sample 5 had its fault (hang) in worker 1",
         "1 good sample never arrived after sample 7 had its fault (frozen) in the reading process of rank 1", True),
        ("3 good samples never arrived after sample 5 had its fault (hang) in worker 1",
         "3 good samples never arrived after sample 5 had its fault (raise) in worker 1", False),
        ("epoch 0: call 2 of next() never returned (no process worked or recorded anything; ended after 13 s)",
         "epoch 0, rank 1: call 7 of next() never returned (ended at the deadline, after 30 s)", True),
        ("the training process itself died (killed by signal 11)", "the training process itself died (exit code 1)", True),
        ("len() said 13, and 12 batches came in epoch 0", "len() said 7, and 1 batch came in epoch 0", True),
        ("the consumer got KeyError: 5", "the consumer got ValueError: 5", False),
        ("it says only: worker 1 failed", "it says only: a subprocess has ended unexpectedly", False),
    ],
)
def test_a_failure_is_shown_once_whatever_differs_between_trials(one: str, other: str, same: bool) -> None:
    """Two failures of one check without a diagnosis are one, unless they say something else than other names and numbers."""
    first = Verdict("m:a", "one-bad", "map", Topology(), "contract-kept", Mark.FAIL, "promised", one)
    second = dataclasses.replace(first, scenario="first-bad", topology=Topology(2, 2), promised="promised on rank 1", happened=other)
    report = dataclasses.replace(small_report(), verdicts=(first, second))
    assert len(broken_promises(report, {})) == (1 if same else 2)
