"""The command: what it prints, where, and with which exit code; that it answers at once, and leaves nothing running."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import psutil
import pytest
from badbatch.conformance.commands import cli, explain, glossary
from badbatch.conformance.commands.kinds import KINDS
from badbatch.conformance.commands.progress import Progress
from badbatch.conformance.report import jsonfile, terminal
from badbatch.conformance.report.digest import SIGNS
from badbatch.harness.contract.job import SOURCES
from badbatch.harness.corpus.base import State
from badbatch.harness.errors import HarnessError
from badbatch.harness.exit_codes import ExitCode
from badbatch.harness.faults.raises import Raise
from badbatch.harness.trial.history import History
from children import child
from example_report import report
from history_dsl import history_of
from staging import SOON_S, wait_until

COMMAND = [sys.executable, "-m", "badbatch.conformance"]
LOADER = "torch.utils.data:DataLoader"


def saved(history: History, folder: Path) -> Path:
    """Write a story as the folder of a trial."""
    folder.mkdir(parents=True)
    history.spec.write(folder / "trial.json")
    for rank in range(history.spec.topology.ranks):
        history.events[history.events["rank"] == rank].tofile(folder / f"events-{rank}.bin")
    lines = [json.dumps({"pid": pid, "n": n, **text}) for (pid, n), text in history.texts.items()]
    (folder / "texts-0.jsonl").write_text("\n".join(lines))
    ended = history.ended
    data = {"cut": ended.cut, "seconds": ended.seconds, "ranks": ended.ranks, "leftovers": [], "evidence": []}
    (folder / "ended.json").write_text(json.dumps(data))
    return folder


def broken_trial(folder: Path) -> Path:
    """A trial that lost a batch whose sample was not damaged."""
    return saved(history_of("0-3 fault5 raise end", plan={5: Raise()}), folder)


def kept_trial(folder: Path) -> Path:
    """A trial that kept every promise."""
    return saved(history_of("0-3 4-7 8-11 end"), folder)


def run(*arguments: str) -> int:
    """The command, in this process."""
    return int(cli._run(arguments))


def process(*arguments: str, cwd: Path, timeout: float = 90) -> subprocess.CompletedProcess[str]:
    """The command, in a separate process."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["compare", "--help"], ["--version"], ["explain", "-h"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """The help is there without torch, numpy, rich or jinja2."""
    code = (
        "import sys\nfrom badbatch.conformance.commands import cli\n"
        f"code = cli._run({arguments!r})\n"
        "heavy = {'torch', 'numpy', 'rich', 'jinja2', 'psutil', 'PIL', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """Every exit code is in the help, with its meaning."""
    assert run("--help") == 0
    text = capsys.readouterr().out
    for code in ExitCode:
        assert f"{code.value}  {code.meaning}" in text


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_explained(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each name of each registry is listed on its own line, and explained with its title."""
    assert run("list", kind) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(explain.names_of(kind))
    assert all(line.startswith(f"{name} ") for name, line in zip(explain.names_of(kind), lines))
    for name, title in explain.listing(kind):
        assert title
        assert run("explain", name) == 0
        assert capsys.readouterr().out.startswith(name)


def test_a_name_of_two_kinds_is_explained_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario that is called like its fault does not hide it."""
    assert run("explain", "segfault") == 0
    text = capsys.readouterr().out
    assert "segfault   scenario" in text and "segfault   fault" in text


def test_overview(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name, everything that can be explained is named."""
    assert run("explain") == 0
    words = [word.strip() for word in " ".join(capsys.readouterr().out.split()).split(",")]
    for kind in KINDS:
        assert set(explain.names_of(kind)[1:-1]) <= set(words)


def test_without_arguments_each_command_lists_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, a kind or a name there is help, with exit code 0."""
    for arguments, said in (
        ([], "badbatch corpus make DIR"),
        (["corpus"], "verify"),
        (["list"], "checks"),
        (["explain"], "A scenario is"),
    ):
        assert run(*arguments) == 0
        out, err = capsys.readouterr()
        assert said in out and err == ""
    assert run("list") == 0
    counts = {line.split()[0]: int(line.split()[1]) for line in capsys.readouterr().out.split("\n\n")[0].splitlines()}
    assert counts == {kind: len(explain.names_of(kind)) for kind in KINDS}


def test_the_words_of_reports_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Every verdict, every state of a stored sample, every source, every label of a failure and every way to end has an article."""
    labels = re.findall(r'field\(\s*"([a-z ]+)"', Path(terminal.__file__).read_text("utf-8"))
    assert len(labels) > 8
    ends = ["ended", "gave up", "never began", "stalled", "out of time", "interrupted"]
    words = [*SIGNS, *(state.value for state in State), *SOURCES, *labels, *ends, "odd", "lost", "doubled", "declared", "inferred"]
    words += ["contested", "flaky", "topology", "collateral", "inconclusive", "unsteady", "Flaky", "not applicable"]
    words += ["observed", "bad sample", "errors", "hung read", "death", "skips", "delay", "Fix these first"]
    for word in words:
        assert run("explain", *word.split()) == 0, word
        capsys.readouterr()


def test_the_glossary_is_closed() -> None:
    """No word means two things, and what a word refers to is a word."""
    names = [name for term in glossary.WORDS for name in (term.name, *term.also)]
    assert len(names) == len(set(names))
    assert {other for term in glossary.WORDS for other in term.see} <= {term.name for term in glossary.WORDS}
    assert [term.name for term in glossary.WORDS] == sorted((term.name for term in glossary.WORDS), key=str.lower)
    assert sorted(term.name for term in glossary.SOURCES) == sorted(SOURCES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "no-lost-batch"], "did you mean 'no-lost-batches'?"),
        (["explain", "qqqqqqqqqqqq"], "badbatch list checks"),
        (["list", "cheeks"], "'cheeks' is not one of"),
        (["run"], "Missing argument 'LOADER'"),
        (["run", LOADER, "--nonsense"], "No such option"),
        (["run", LOADER, "--workers", "two"], "--workers: 'two' is not a whole number"),
        (["run", LOADER, "--timeout", "90"], "--timeout and --deadline: a trial of 30 s"),
        (["run", LOADER, "--json", "missing/report.json"], "there is no folder missing"),
        (["run", LOADER, "--scenario", "one-bda"], "did you mean 'one-bad'?"),
        (["run", LOADER, "--check", "no-lost"], "unknown check 'no-lost'"),
        (["run", LOADER, "--source", "parket"], "unknown source 'parket'; did you mean 'parquet'?"),
        (["compare", LOADER, LOADER, "--source", "*parket*"], "did you mean 'parquet'?"),
        (["run", LOADER, "--source", "parquet"], "is offered only map, sharded_stream, and the selected sources (parquet)"),
        (["run", LOADER, "--known", "troch"], "did you mean 'torch'?"),
        (["compare", "one.json", "two.json"], "cannot read the report one.json"),
        (["compare", LOADER], "a comparison needs two"),
        (["judge", "nowhere"], "nowhere is no trial"),
        (["replay", "nowhere.json"], "nowhere.json is no trial"),
        (["replay", "nowhere", "--isolation", "froq"], "--isolation: 'froq' is none of"),
    ],
)
def test_usage_errors(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user can fix is reported on standard error, without a traceback, with exit code 2."""
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert said in err and out == ""
    assert err.startswith("badbatch: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ("nosuchmodule:thing", "nosuchmodule"),
        ("json:nothing", "nothing"),
        ("json:__name__", "json"),
        ("noattribute", ":"),
    ],
)
def test_loaders_that_are_none(loader: str, said: str, tmp_path: Path) -> None:
    """A loader that cannot be imported, or is not a loader, is reported in one line with exit code 2."""
    done = process("run", loader, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.startswith("badbatch: ") and said in done.stderr and done.stderr.count("\n") == 1


def test_judge_a_broken_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded trial is judged again without a process: five parts, each check on a line, exit code 1."""
    folder = broken_trial(tmp_path / "trial")
    assert run("judge", str(folder)) == ExitCode.BROKEN
    text = capsys.readouterr().out
    assert "F no-lost-batches" in text and ". no-duplicates" in text
    assert "lost       8-11" in text
    assert f"again      badbatch replay {folder}" in text
    assert f"5: {Raise()!r} — took hold" in " ".join(text.split())


def test_judge_a_kept_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trial that kept its promises ends with exit code 0, and its last line says so."""
    assert run("judge", str(kept_trial(tmp_path / "trial"))) == ExitCode.KEPT
    assert capsys.readouterr().out.splitlines()[-1].startswith("every promise kept: ")


def test_judge_takes_the_file_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trial is named by its folder or by the file in it, and quiet is one line."""
    folder = kept_trial(tmp_path / "trial")
    assert run("judge", "-q", str(folder / "trial.json")) == ExitCode.KEPT
    assert capsys.readouterr().out.count("\n") == 1


def test_judge_what_was_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trial that has no record is not judged."""
    folder = tmp_path / "trial"
    folder.mkdir()
    history_of("0-3 end").spec.write(folder / "trial.json")
    assert run("judge", str(folder)) == ExitCode.USAGE
    assert "has not been run" in capsys.readouterr().err


def test_judge_shows_the_evidence_of_a_stall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a trial that was cut short, the record's evidence and the last of its output are printed."""
    folder = saved(history_of("0-3 ask stalled"), tmp_path / "trial")
    (folder / "output-0.txt").write_text("loading\n    deeper\x1b[2J\n")
    evidence = {"pid": 7, "ppid": 1, "state": "sleeping", "name": "worker", "waits_in": "futex_wait"}
    ended = json.loads((folder / "ended.json").read_text()) | {"evidence": [evidence]}
    (folder / "ended.json").write_text(json.dumps(ended))
    assert run("judge", str(folder)) == ExitCode.BROKEN
    text = capsys.readouterr().out
    assert "7 (worker), child of 1: sleeping in futex_wait" in text
    assert "      deeper\\x1b[2J" in text


def test_json_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json - standard output contains only the report, and the text goes to standard error."""
    assert run("judge", str(broken_trial(tmp_path / "trial")), "--json", "-") == ExitCode.BROKEN
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == 1
    assert "FAIL" in err


def test_compare_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are compared, and written in all formats, without anything being run."""
    monkeypatch.chdir(tmp_path)
    jsonfile.write_text(jsonfile.dumps_reports([report(), report()]), Path("both.json"))
    targets = ["--json", "c.json", "--markdown", "c.md", "--html", "c.html"]
    assert run("compare", "both.json", *targets) == ExitCode.BROKEN
    assert "mypkg.data:make" in capsys.readouterr().out
    assert len(json.loads(Path("c.json").read_text())["reports"]) == 2
    assert Path("c.md").read_text().startswith("# Comparison") and "</html>" in Path("c.html").read_text()


def test_run_and_replay(tmp_path: Path) -> None:
    """A real run writes its reports, keeps the folder of a failing trial, and the command that it prints runs it again."""
    options = ["--scenario", "two-argument-error", "--check", "error-kept", "--workers", "0,1", "--ranks", "1"]
    targets = ["--json", "r.json", "--html", "r.html", "--junit", "r.xml"]
    done = process("run", LOADER, *options, *targets, cwd=tmp_path)
    assert done.returncode == ExitCode.BROKEN, done.stderr
    assert done.stderr == ""  # no progress without a terminal
    assert "two-argument-error · workers=1" in done.stdout and "\x1b" not in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {".badbatch", "r.json", "r.html", "r.xml"}
    assert (tmp_path / ".badbatch" / ".gitignore").read_text().splitlines()[-1] == "*"  # git does not see the folder
    [again] = {line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("  again")}
    assert again.startswith("badbatch replay .badbatch/")
    second = process(*again.split()[1:], "--keep", "kept", cwd=tmp_path)
    assert second.returncode == ExitCode.BROKEN, second.stderr
    assert "F error-kept" in second.stdout
    assert process("judge", "kept", cwd=tmp_path).returncode == ExitCode.BROKEN
    assert process(*again.split()[1:], "--keep", "kept", cwd=tmp_path).returncode == ExitCode.USAGE


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends a run long before its trials could end, with one line and exit code 130, and leaves no process and no file."""
    command = [*COMMAND, "run", LOADER, "--scenario", "hung-*", "--workers", "2", "--ranks", "1"]
    command += ["--timeout", "1000", "--deadline", "4000"]
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with child(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as running:
        # The zygote, a trial supervisor, and a rank at least.
        wait_until(lambda: len(psutil.Process(running.pid).children(recursive=True)) >= 3, "a trial is under way", within_s=60)
        family = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=SOON_S)
    assert running.returncode == ExitCode.INTERRUPTED
    assert err.count("\n") == 1 and "interrupted" in err
    assert out == "" or "interrupted: " in out  # during the probe there is nothing to report
    _, alive = psutil.wait_procs(family, timeout=SOON_S)
    assert alive == []
    assert [path.name for path in scratch.iterdir()] == []


def test_our_own_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the harness, expected or not, is exit code 4; nothing of it looks like a failure of the loader."""
    folder = kept_trial(tmp_path / "trial")
    expected, unforeseen = HarnessError("the zygote has died"), KeyError("k")
    for error, said in ((expected, "badbatch: the zygote has died"), (unforeseen, "a fault of badbatch itself")):

        def fail(path: Path, error: Exception = error) -> History:
            raise error

        monkeypatch.setattr(History, "load", fail)
        assert run("judge", str(folder)) == ExitCode.HARNESS
        assert said in capsys.readouterr().err


def test_interrupt_of_any_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt is one line, whatever ran."""
    folder = kept_trial(tmp_path / "trial")

    def interrupt(path: Path) -> History:
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "load", interrupt)
    assert run("judge", str(folder)) == ExitCode.INTERRUPTED
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal's standard error the loader, its broken trials and their number are shown; elsewhere nothing."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, quiet, shown in ((Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(quiet) as progress:
            progress.begin("mypkg.data:make")
            progress.begin("mypkg.data:make", len(report().trials))
            for trial in report().trials:
                progress.judged(trial)
        assert ("mypkg.data:make" in stream.getvalue()) is shown


def test_corpus_is_mounted(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands on corpora exist, and are imported only when they are used."""
    assert run("corpus", "--help") == 0
    assert "verify" in capsys.readouterr().out
    group = cli.badbatch.get_command(click.Context(cli.badbatch), "corpus")
    assert isinstance(group, click.Group)
    assert "make" in group.list_commands(click.Context(group))


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    """A pipe whose reader has ended ends the command silently."""
    running = subprocess.Popen(
        [*COMMAND, "list", "faults"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    running.stderr.close()
    running.wait(timeout=30)
