"""Loaders side by side: from reports that are there, or from runs, as text, Markdown, HTML and JSON."""

from __future__ import annotations

import dataclasses
import html.parser
import json
from pathlib import Path

import pytest
from badbatch.conformance.commands.compare import gather, is_report
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from badbatch.conformance.report import comparison, jsonfile
from badbatch.conformance.report.compared import Cell, Comparison, compare
from badbatch.conformance.report.model import Report
from badbatch.conformance.report.places import Column
from badbatch.harness.errors import UserError
from badbatch.harness.exit_codes import ExitCode
from badbatch.harness.trial.spec import Topology
from example_report import ALONE, LOADER, WORKERS, report, trial, verdict

HERE = Path(__file__).parent
OTHER = "other.data:make"


def good() -> Report:
    """Another loader, which keeps what the example breaks, and was run in fewer topologies."""
    results = [
        trial([verdict("no-lost-batches", Mark.PASS, scenario, topology)], 39)
        for scenario in ("one-bad", "first-bad")
        for topology in (ALONE, WORKERS)
    ]
    return dataclasses.replace(
        report(),
        loader=OTHER,
        trials=tuple(results),
        verdicts=tuple(v for result in results for v in result.verdicts),
        stale_known=(),
    )


def both() -> Comparison:
    return compare([report(), good()])


def test_cells() -> None:
    """A cell shows how many of the expected samples arrived and how the trial ended; n/a and missing cells say so."""
    found = both()
    one = Column("map", WORKERS)
    assert str(found.cell(0, "one-bad", one)) == "24/39 ended"
    assert str(found.cell(0, "hung-read", one)) == "4/39 stalled"
    assert (
        found.cell(0, "hung-read", Column("map", ALONE)).sign,
        str(found.cell(0, "hung-read", Column("map", ALONE))),
    ) == (
        "-",
        "n/a",
    )
    assert found.cell(1, "hung-read", one) == Cell("")
    assert str(found.cell(1, "one-bad", one)) == "39/39 ended"
    assert [found.cell(index, "one-bad", one).sign for index in (0, 1)] == ["F", "."]


def test_columns_are_those_of_all() -> None:
    """Scenarios and topologies that only one of the reports has are there."""
    found = both()
    assert Column("stream", Topology(2, 2)) in found.columns
    assert {"hung-read", "first-bad"} <= set(found.scenarios)
    assert len(set(found.columns)) == len(found.columns)


def test_tallies() -> None:
    """For each check and loader it is counted in how many trials it failed, of how many."""
    tallies = both().tallies["no-lost-batches"]
    assert [str(tally) for tally in tallies] == ["4 of 6 (and 1 known)", "0 of 4"]
    assert [str(tally) for tally in both().tallies["no-leftovers"]] == ["n/a", "n/a"]


def test_text_of_the_example() -> None:
    """The text of a fixed comparison is the one that was agreed on."""
    expected = (HERE / "expected" / "compare.txt").read_text(encoding="utf-8")
    assert comparison.render(both()) + "\n" == expected


@pytest.mark.parametrize("width", [60, 80, 120, 300])
def test_every_cell_is_printed(width: int) -> None:
    """However narrow the terminal, no cell is left out, and loaders of one topology are side by side."""
    found = both()
    lines = comparison.render(found, width=width).splitlines()
    for scenario in found.scenarios:
        row = " ".join(line for line in lines if line.split()[:1] == [scenario])
        cells = [found.cell(index, scenario, column) for column in found.columns for index in (0, 1)]
        assert row.count("ended") == sum(str(cell).endswith("ended") for cell in cells)
    if width >= 80:
        assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": dataclasses.replace(report().run, samples=100)}, f"samples: 40 in {LOADER}; 100 in {OTHER}"),
        ({"run": dataclasses.replace(report().run, batch_size=8)}, f"batch size: 4 in {LOADER}; 8 in {OTHER}"),
        ({"run": dataclasses.replace(report().run, badbatch="")}, f"badbatch: 0.1.0 in {LOADER}; not known in {OTHER}"),
        ({"seed": 8}, f"seed: 7 in {LOADER}; 8 in {OTHER}"),
    ],
)
def test_runs_with_different_settings_are_named(change: dict[str, object], said: str) -> None:
    """Where samples, batch size, seed or version differ, every format says that the cells cannot be compared, and why."""
    found = compare([report(), dataclasses.replace(good(), **change)])  # type: ignore[arg-type]
    assert found.differences == (said,) == tuple(found.to_json()["differences"])
    for text in (comparison.render(found), comparison.html(found)):
        assert comparison.DIFFERENT in text and said in " ".join(text.split())
    assert comparison.DIFFERENT in comparison.markdown(found)
    assert comparison.DIFFERENT not in comparison.render(both()) and both().differences == ()


def test_markdown() -> None:
    """The Markdown has as many cells in each row as in its head, and escapes what would end a cell."""
    hostile = dataclasses.replace(good(), loader="a|b:`c`")
    lines = comparison.markdown(compare([report(), hostile])).splitlines()
    tables = [line.replace("\\|", "").count("|") for line in lines if line.startswith("|")]
    width = 2 * len(both().columns) + 2
    assert sorted(set(tables)) == [4, width]
    assert "a\\|b:\\`c\\`" in "\n".join(lines)


def test_html() -> None:
    """The page contains every cell and no script, and escapes names."""
    hostile = dataclasses.replace(good(), loader="<script>:x")
    text = comparison.html(compare([report(), hostile]))
    assert "<script" not in text and "&lt;script&gt;:x" in text
    words: list[str] = []
    parser = html.parser.HTMLParser()
    parser.handle_data = words.append  # type: ignore[method-assign]
    parser.feed(text)
    assert "4/39 stalled" in " ".join("".join(words).split())


def test_json_contains_cells_and_reports() -> None:
    """The JSON has every cell, the tallies, and the reports it was made from."""
    data = json.loads(json.dumps(both().to_json()))
    assert data["comparison"] == [LOADER, OTHER]
    assert len(data["cells"]) == len(report().trials) + len(good().trials)
    assert data["checks"]["no-lost-batches"][OTHER] == {"failed": 0, "known": 0, "judged": 4}
    assert [Report.from_json(entry).loader for entry in data["reports"]] == [LOADER, OTHER]


def test_exit_code_is_the_worst() -> None:
    """A comparison ends with the worst exit code of its reports."""
    assert both().exit_code is ExitCode.BROKEN
    assert compare([good(), good()]).exit_code is ExitCode.KEPT


def test_two_reports_of_one_loader_have_different_names() -> None:
    """Reports of the same loader are named by where they came from, and never alike."""
    found = compare([report(), report(), good()], ["old.json", "new.json", "other.json"])
    assert found.names == (f"{LOADER} (old.json)", f"{LOADER} (new.json)", OTHER)
    assert len(set(compare([report(), report()]).names)) == 2


def test_files_are_compared_without_running_anything(tmp_path: Path) -> None:
    """Stored reports, one or several in a file, are compared without running anything."""
    (tmp_path / "both.json").write_text(jsonfile.dumps_reports([report(), good()]))
    found = gather([str(tmp_path / "both.json")], Options())
    assert comparison.render(found) == comparison.render(both())


def test_what_is_a_report(tmp_path: Path) -> None:
    """An existing file, or a name that ends with .json, is a report; anything else a loader."""
    (tmp_path / "report").write_text("{}")
    assert is_report(str(tmp_path / "report")) and is_report("missing.json")
    assert not is_report("torch.utils.data:DataLoader")


def test_wrong_arguments(tmp_path: Path) -> None:
    """A single report, and a file that is not there, are refused."""
    (tmp_path / "one.json").write_text(jsonfile.dumps_reports([report()]))
    with pytest.raises(UserError, match="a comparison needs two"):
        gather([str(tmp_path / "one.json")], Options())
    with pytest.raises(UserError, match="cannot read the report"):
        gather(["missing.json", str(tmp_path / "one.json")], Options())
