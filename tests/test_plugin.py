"""The pytest plugin, run as users run it: in a separate process, in a folder of theirs."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from badbatch.conformance.pytest import session

LOADER = """
import torch
from torch.utils.data import DataLoader, DistributedSampler
from badbatch.harness import loader


def fetch(dataset, job):
    sampler = DistributedSampler(dataset, job.world_size, job.rank, shuffle=job.shuffle) if job.world_size > 1 else None
    return DataLoader(
        dataset, batch_size=job.batch_size, num_workers=job.num_workers, drop_last=job.drop_last, sampler=sampler
    )


@loader(on_damage="raise", after_error="continue", tail="pad")
def honest(job):
    return fetch(job.dataset, job)


class Unlucky(torch.utils.data.Dataset):
    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[0 if index == 7 else index]


@loader(on_damage="raise", after_error="continue", tail="pad")
def doubling(job):
    return fetch(Unlucky(job.dataset), job)


def no_batches(job):
    return 5


def no_ids(job):
    return [object()]


def two(job, other):
    return []
"""

FEW = ("--loader-workers=0", "--loader-ranks=1", "--loader-scenario=one-bad", "--loader-scenario=clean")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a folder that contains the loaders above."""
    pytester.makepyfile(mine=LOADER)
    return pytester.runpytest_subprocess("-p", "no:hypothesispytest", *arguments, timeout=100)


def test_a_good_loader_is_green(pytester: pytest.Pytester) -> None:
    """A loader that keeps its promises passes, and with --loader-only no other test is collected."""
    pytester.makepyfile(test_mine="def test_that_is_not_collected(): assert False")
    result = run(pytester, "--loader", "mine:honest", "--loader-only", *FEW)
    assert result.ret == pytest.ExitCode.OK
    outcomes = result.parseoutcomes()
    assert "failed" not in outcomes
    assert outcomes["passed"] > 15


def test_many_failed_items_are_listed_by_promise(pytester: pytest.Pytester) -> None:
    """Where more than ten items failed, pytest lists one for each broken promise, counts all, and -v lists all."""
    chosen = ("--loader-workers=0", "--loader-ranks=1", "--loader-check=no-*", "--loader-check=honest-length", "--loader-repeat=1")
    result = run(pytester, "--loader", "mine:doubling", *chosen)
    failed = result.parseoutcomes()["failed"]
    lines = [line for line in result.stdout.lines if line.startswith("FAILED")]
    assert failed > 10 and 0 < len(lines) < 10
    assert len({line.rpartition("::")[2].split()[0] for line in lines}) == len(lines)
    result.stdout.fnmatch_lines([f"{failed - len(lines)} more failed items are shown above with their cause*"])


def test_a_broken_promise_is_red_and_shown_once(pytester: pytest.Pytester) -> None:
    """The failure is shown in five parts, in its own section, and pytest lists the failing item by its short id."""
    result = run(pytester, "--loader", "mine:doubling", *FEW)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*no-duplicates*FAIL", "*promised*", "*happened*", "*again*badbatch replay*", "FAILED badbatch::clean?workers=0?::*"]
    )


def test_paths_are_collected_beside_the_suite(pytester: pytest.Pytester) -> None:
    """With paths, both the suite and the user's own tests run; -k selects among both."""
    pytester.makepyfile(test_mine="def test_of_my_own(faulty): assert faulty([1, 2], {}) is not None")
    result = run(pytester, "--loader", "mine:honest", *FEW, "test_mine.py", "-k", "own or content")
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes()["passed"] == 3


def test_a_node_id_runs_only_that_check(pytester: pytest.Pytester) -> None:
    """A node id copied from the output selects it; one that is unknown is a usage error."""
    result = run(pytester, "--loader", "mine:honest", "badbatch::one-bad[workers=0]::no-lost-batches", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["badbatch::one-bad?workers=0?::no-lost-batches PASSED*"])
    wrong = run(pytester, "--loader", "mine:honest", "badbatch::one-bad[workers=9]")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR


def test_collect_only_and_last_failed(pytester: pytest.Pytester) -> None:
    """--co lists without running; --lf runs what failed and no more."""
    listed = run(pytester, "--loader", "mine:doubling", *FEW, "--co", "-q")
    listed.stdout.fnmatch_lines(["badbatch::clean?workers=0?::no-duplicates"])
    first = run(pytester, "--loader", "mine:doubling", *FEW, "-q")
    again = run(pytester, "--loader", "mine:doubling", *FEW, "-q", "--lf")
    assert again.parseoutcomes()["failed"] == first.parseoutcomes()["failed"]
    assert "passed" not in again.parseoutcomes()


def test_junit_carries_the_trial(pytester: pytest.Pytester) -> None:
    """Each case has its scenario, topology, check, verdict and replay command as properties, also under xdist."""
    pytest.importorskip("xdist")
    for name, extra in (("alone.xml", ()), ("several.xml", ("-n", "2"))):
        run(pytester, "--loader", "mine:doubling", *FEW, f"--junitxml={name}", *extra)
        cases = list(ElementTree.parse(pytester.path / name).iter("testcase"))
        assert ("badbatch.clean[workers=0]", "no-duplicates") in {(c.get("classname"), c.get("name")) for c in cases}
        assert {c.get("classname") for c in cases} == {"badbatch.clean[workers=0]", "badbatch.one-bad[workers=0]"}
        found = [{p.get("name"): p.get("value") for p in case.iter("property")} for case in cases]
        assert all({"scenario", "topology", "check", "verdict", "replay"} <= set(properties) for properties in found)
        broken = [properties for properties in found if properties["verdict"] == "fail"]
        assert {"no-duplicates"} <= {properties["check"] for properties in broken}
        assert all((properties["replay"] or "").startswith("badbatch replay ") for properties in broken)


def test_workers_of_xdist_share_the_trials(pytester: pytest.Pytester) -> None:
    """With two processes every trial with faults of a cell is judged, as with one, and none is run by both."""
    pytest.importorskip("xdist")
    many = ("--loader-workers=0", "--loader-ranks=1", *(f"--loader-scenario={name}" for name in ("clean", "*-bad")))
    found = {}
    for kept, extra in (("alone", ()), ("several", ("-n", "2"))):
        result = run(pytester, "--loader", "mine:honest", *many, "-q", "--loader-keep", kept, *extra)
        assert result.ret == pytest.ExitCode.OK
        found[kept] = result.parseoutcomes()
        assert len(list((pytester.path / kept).iterdir())) == 7
    assert found["several"] == found["alone"]


def test_the_folder_that_workers_share_is_private(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under xdist a folder with a name that others can predict is neither read nor written, and nothing is left behind."""
    pytest.importorskip("xdist")
    scratch = pytester.mkdir("scratch")
    foreseen = scratch / "badbatch-xdist-foreseen"
    foreseen.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    result = run(pytester, "--loader", "mine:honest", "--loader-only", *FEW, "-q", "-n", "2", "--testrunuid=foreseen")
    assert result.ret == pytest.ExitCode.OK
    assert list(scratch.iterdir()) == [foreseen]
    assert list(foreseen.iterdir()) == []


def test_only_a_folder_of_ones_own_is_believed(tmp_path: Path) -> None:
    """A folder that others can read or write, a link, or a file is not shared through."""
    own, open_to_all, link = tmp_path / "own", tmp_path / "open", tmp_path / "link"
    own.mkdir(mode=0o700)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link.symlink_to(own)
    assert [session._is_ours(folder) for folder in (own, open_to_all, link, tmp_path / "none")] == [True, False, False, False]


def test_several_loaders_one_after_another(pytester: pytest.Pytester) -> None:
    """Each loader has its own node ids and its own section."""
    result = run(pytester, "--loader", "mine:honest", "--loader", "mine:doubling", *FEW, "-q")
    result.stdout.fnmatch_lines(["*badbatch: mine:honest*", "*badbatch: mine:doubling*", "FAILED badbatch?mine:doubling?::*"])


def test_the_report_is_written(pytester: pytest.Pytester) -> None:
    """--loader-json writes schema 1, with the contract's declared parts."""
    run(pytester, "--loader", "mine:honest", *FEW, "--loader-json", "report.json", "--loader-html", "report.html")
    data = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    assert data["schema"] == 1
    assert data["contract"]["on_damage"] == "raise"
    assert data["summary"]["fail"] == 0
    assert "mine:honest" in (pytester.path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--loader", "nowhere:x"), "there is no module 'nowhere'"),
        (("--loader", "mine:honst"), "did you mean 'honest'"),
        (("--loader", "mine"), "write it as pkg.module:attr"),
        (("--loader", "mine:two"), "a factory takes one argument"),
        (("--loader", "mine:no_batches"), "cannot be iterated"),
        (("--loader", "mine:no_ids"), "no sample ids found"),
        (("--loader", "mine:honest", "--loader-scenario", "one-badd"), "did you mean 'one-bad'"),
        (("--loader", "mine:honest", "--loader-check", "no-duplicate"), "did you mean 'no-duplicates'"),
        (("--loader", "mine:honest", "--loader-source", "steam"), "did you mean 'stream'"),
        (("--loader", "mine:honest", "--loader-source", "stream"), "is offered only map"),
        (("--loader", "mine:honest", "--loader-workers", "-1"), "--loader-workers"),
        (("--loader", "mine:honest", "--loader-deadline", "1", "--loader-timeout", "5"), "deadline"),
    ],
)
def test_bad_input_is_one_line(pytester: pytest.Pytester, arguments: tuple[str, ...], words: str) -> None:
    """What the user got wrong is reported in one line, and pytest ends with its usage error."""
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR")]
    assert len(errors) == 1
    assert words in errors[0]


def test_ini_keys_stand_in_for_flags(pytester: pytest.Pytester) -> None:
    """The loader and its options may be in the ini file; a bad value there names the file."""
    pytester.makeini("[pytest]\nloader = mine:honest\nloader_workers = 0\nloader_ranks = 1\nloader_scenario = clean\n")
    assert run(pytester).ret == pytest.ExitCode.OK
    pytester.makeini("[pytest]\nloader = mine:honest\nloader_workers = many\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: loader_workers in *: *"])


def test_inconclusive_is_not_green(pytester: pytest.Pytester) -> None:
    """A faulted trial of a loader that fails clean is inconclusive, and the run is not green for it."""
    result = run(pytester, "--loader", "mine:doubling", "badbatch::one-bad[workers=0]::no-lost-batches")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["inconclusive"] == 1


def test_known_failures_are_not_red_and_stale_ones_are(pytester: pytest.Pytester) -> None:
    """A declared exception is known; one that holds no longer fails the run."""
    entry = '[[known]]\ncheck = "no-duplicates"\nscenario = "clean"\nreason = "to be fixed"\n'
    rest = '[[known]]\ncheck = "no-lost-batches"\nscenario = "clean"\nreason = "the other half"\n'
    (pytester.path / "known.toml").write_text(entry + rest, encoding="utf-8")
    few = ("--loader-workers=0", "--loader-ranks=1", "--loader-scenario=clean", "--loader-known=known.toml")
    assert run(pytester, "--loader", "mine:doubling", *few).ret == pytest.ExitCode.OK
    result = run(pytester, "--loader", "mine:honest", *few)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*known.toml*"])


def test_parametrize_with_checks(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decorator gives each check of each trial to the user's own test function, and leaves no folder behind."""
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("scratch")))
    pytester.makepyfile(
        mine=LOADER,
        test_mine="""
        from badbatch.conformance import parametrize_with_checks
        from mine import doubling, honest

        few = dict(workers=(0,), ranks=(1,), scenarios=("clean", "one-bad"))

        @parametrize_with_checks(honest, **few)
        def test_honest(check):
            check()

        @parametrize_with_checks(doubling, **few)
        def test_doubling(check):
            check()
        """,
    )
    result = pytester.runpytest_subprocess("test_mine.py", "-v", timeout=100)
    result.stdout.fnmatch_lines(["*test_honest?clean?workers=0?-no-duplicates? PASSED*"])
    result.stdout.fnmatch_lines(["*test_doubling?clean?workers=0?-no-duplicates? FAILED*"])
    result.stdout.fnmatch_lines(["*test_doubling?one-bad?workers=0?-no-lost-batches? FAILED*"])  # inconclusive
    assert "failed" in result.parseoutcomes()
    listed = pytester.runpytest_subprocess("test_mine.py", "--co", "-q", timeout=100)
    assert listed.ret == pytest.ExitCode.OK
    assert list((pytester.path / "scratch").iterdir()) == []


def test_a_known_file_is_written_from_a_run(pytester: pytest.Pytester) -> None:
    """Failures of a run become a known file; filled in, it makes the next run green; a second one is refused at once."""
    chosen = ("--loader", "mine:doubling", "--loader-workers=0", "--loader-ranks=1", "--loader-scenario=clean")
    assert run(pytester, *chosen, "--loader-write-known=new.toml").ret == pytest.ExitCode.TESTS_FAILED
    text = (pytester.path / "new.toml").read_text()
    assert "no-duplicates" in text
    again = run(pytester, *chosen, "--loader-write-known=new.toml")
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    again.stderr.fnmatch_lines(["*cannot write new.toml: it already exists*"])
    (pytester.path / "new.toml").write_text(text.replace("FILL IN: why is this failure accepted?", "a test"))
    assert run(pytester, *chosen, "--loader-known=new.toml").ret == pytest.ExitCode.OK


def test_check_loader_returns_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library session runs the suite and returns its report."""
    from badbatch.conformance import check_loader

    (tmp_path / "mine_too.py").write_text(LOADER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = check_loader("mine_too:doubling", workers=(0,), ranks=(1,), scenarios=("clean",))
    assert not report.ok
    assert "FAIL clean[workers=0] no-duplicates" in str(report)
    assert {verdict.check for verdict in report.verdicts if verdict.mark == "fail" and not verdict.cause} == {"no-duplicates"}
    assert "mine_too" not in sys.modules
