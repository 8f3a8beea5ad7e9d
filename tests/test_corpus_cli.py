"""``badbatch corpus …`` as users see it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("PIL")
pytest.importorskip("faker")

from badbatch.harness.corpus.base import Choice
from badbatch.harness.corpus.cli import corpus
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.decoders import Column, _apart, _cell
from badbatch.harness.corpus.recipe import parse_choice, parse_share, parse_size
from badbatch.harness.errors import UserError


def run(*arguments: object) -> Result:
    """The command's outcome."""
    return CliRunner().invoke(corpus, [str(argument) for argument in arguments])


def test_make_then_verify_then_show(tmp_path: Path) -> None:
    """The three commands work on each other's results, and make says what it made, with its seed."""
    root = tmp_path / "rotten"
    made = run("make", root, "--samples", 80, "--damage", "25%", "--oddities", "25%", "--seed", 7, "--size", "64x64")
    assert made.exit_code == 0, made.output
    assert "80 samples" in made.output
    assert "seed 7" in made.output
    verified = run("verify", root)
    assert (0, f"{root}: no changes\n") == (verified.exit_code, verified.output)
    shown = run("show", root, "--html", tmp_path / "sheet.html", "--png", tmp_path / "sheet.png")
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "sheet.html").read_text()
    struck = [name for name in disk_faults("imagefolder") if f"<strong>{name}</strong>" in page]
    assert len(struck) > 30
    assert page.count("<img") > 30
    assert (tmp_path / "sheet.png").read_bytes()[:4] == b"\x89PNG"


def test_verify_exits_with_1_when_something_changed(tmp_path: Path) -> None:
    """A change is printed, and has its own exit code."""
    root = tmp_path / "c"
    assert run("make", root, "--samples", 5, "--damage", "0", "--oddities", "0", "--size", "64", "-q").exit_code == 0
    (root / "more.txt").write_text("")
    verified = run("verify", root)
    assert (1, f"extra: more.txt\n{root}: 1 change(s)\n") == (verified.exit_code, verified.output)
    assert ((quiet := run("verify", root, "-q")).exit_code, quiet.output) == (1, "")


def test_quiet_is_quiet(tmp_path: Path) -> None:
    """With -q nothing is printed."""
    made = run("make", tmp_path / "q", "--samples", 3, "--size", "64", "-q")
    assert (made.exit_code, made.output) == (0, "")


WRONG = {
    "an unknown fault": (["--fault", "jpeg-cut-scam"], "did you mean 'jpeg-cut-scan'?"),
    "too much damage": (["--damage", "120%"], "between 0% and 100%"),
    "damage that is no number": (["--damage", "lots"], "written like 5% or 0.05"),
    "damage and oddities beyond all": (["--damage", "60%", "--oddities", "60%"], "more than all of them"),
    "a size that is none": (["--size", "big"], "written like 256x256"),
    "a size far too large": (["--size", "99999x1"], "16384"),
    "no samples": (["--samples", "0"], "at least one sample"),
    "an unknown kind": (["--kind", "imagefolders"], "did you mean 'imagefolder'?"),
    "a parameter that the fault lacks": (["--fault", "zero-tail(keep=1)"], "did you mean 'kept'?"),
    "a value that the parameter cannot have": (["--fault", "png-cut(at=here)"], "at must be one of"),
    "a weight of nothing": (["--fault", "no-bytes:0"], "more than 0"),
    "an unknown format": (["--format", "jpg"], "did you mean 'jpeg'?"),
    "no jobs": (["--jobs", "0"], "at least 1"),
    "a folder that is not there": (["--from", "nowhere-at-all"], "no such folder"),
    "samples of an origin": (["--from", ".", "--samples", "3"], "leave --samples out"),
    "an unknown protocol": (["--samples", "3"], None),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(what: str, tmp_path: Path) -> None:
    """Each mistake is answered by one line that says how to fix it, and nothing is made."""
    options, words = WRONG[what]
    target = "nonsense://x/y" if words is None else tmp_path / "wrong"
    done = run("make", target, *options)
    assert done.exit_code == 2, done.output
    assert len(done.output.splitlines()) == 1
    assert done.output.startswith("badbatch: ")
    assert words is None or words in done.output
    assert os.listdir(tmp_path) == []


def test_an_existing_target_is_named_with_the_way_out(tmp_path: Path) -> None:
    """The refusal to overwrite says how to overwrite."""
    (tmp_path / "there").write_text("")
    done = run("make", tmp_path / "there")
    assert (done.exit_code, "--force" in done.output) == (2, True)


def test_faults_lists_every_fault_and_what_it_fits() -> None:
    """The list names every disk fault, and with a kind exactly those that fit it."""
    everything = run("faults").output
    assert all(f"  {name} " in everything for name in disk_faults())
    pictures = run("faults", "--kind", "imagefolder").output
    assert set(disk_faults("imagefolder")) == {
        line.split()[0] for line in pictures.splitlines() if line.startswith(" ")
    }
    assert run("faults", "--kind", "imagefoldr").exit_code == 2


def test_make_reports_pipes_and_can_leave_them_out(tmp_path: Path) -> None:
    """make says how many named pipes there are, the corpus's README names them, and --no-pipes makes none of them."""
    options = ("--samples", 60, "--damage", "100%", "--oddities", "0", "--size", "64", "--seed", 3)
    faults = ("--fault", "hanging-pipe", "--fault", "trickling-pipe", "--fault", "no-bytes")
    made = run("make", tmp_path / "pipes", *options, *faults)
    assert "  40 named pipe(s): cat, sha256sum" in made.output
    assert "40 × named pipes (FIFOs)" in (tmp_path / "pipes" / "README.md").read_text()
    plain = run("make", tmp_path / "plain", *options, "--no-pipes")
    assert plain.exit_code == 0, plain.output
    assert "named pipe" not in plain.output + (tmp_path / "plain" / "README.md").read_text()
    assert not [path for path in (tmp_path / "plain").rglob("*") if path.is_fifo()]
    assert [path for path in (tmp_path / "plain").rglob("*") if path.is_symlink()]  # the other special files stay
    refused = run("make", tmp_path / "both", *options, *faults, "--no-pipes")
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
    assert "--no-pipes" in refused.output and "hanging-pipe" in refused.output


def test_a_readme_that_the_user_changed_is_found_and_kept(tmp_path: Path) -> None:
    """verify names a changed README, and --force does not replace it."""
    root = tmp_path / "c"
    assert run("make", root, "--samples", 5, "--size", "64", "-q").exit_code == 0
    (root / "README.md").write_text("my notes")
    assert run("verify", root).output.startswith("changed: README.md: 8 bytes instead of ")
    refused = run("make", root, "--samples", 5, "--size", "64", "--force")
    assert (refused.exit_code, "README.md" in refused.output) == (2, True)
    assert (root / "README.md").read_text() == "my notes"


def test_show_without_options_lists_the_faults(tmp_path: Path) -> None:
    """Without a file to write, show lists each fault and oddity with its state, its number and an example."""
    root = tmp_path / "c"
    options = ("--samples", 40, "--damage", "20%", "--oddities", "20%", "--size", "64", "-q")
    assert run("make", root, *options, "--fault", "no-bytes", "--fault", "hanging-pipe", "--fault", "grey").exit_code == 0
    shown = run("show", root)
    assert shown.exit_code == 0
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    for name, state, count in (("no-bytes", "damaged", 4), ("hanging-pipe", "hangs", 4), ("grey", "good", 8)):
        assert [line for line in lines if line.startswith(f"{name} {state} {count} sample ")]
    assert "4 named pipes (FIFOs)" in lines


def test_show_without_a_corpus(tmp_path: Path) -> None:
    """If there is no corpus, show says so."""
    assert run("show", tmp_path).exit_code == 2
    assert run("show", tmp_path, "--html", tmp_path / "x.html").exit_code == 2


@pytest.mark.parametrize(
    ("edited", "words"),
    [
        ("{", "line 3 of manifest.badbatch"),
        ("null", "line 3 of manifest.badbatch"),
        ("", "line 3 of manifest.badbatch"),
        ('{"id": 7, "path": "a.jpg", "state": "good"}', "its id is 7, and should be 2"),
        ('{"id": 2, "path": "a.jpg", "state": "rotten"}', "Invalid enum value 'rotten' at `state`"),
        ('{"id": 2, "path": "a.jpg", "state": "good", "fault": "no-bytes"}', "line 3 of manifest.badbatch"),
        ('{"id": 2, "path": "a.jpg", "state": "good", "taste": "sour"}', "unknown field 'taste'"),
    ],
)
def test_show_of_an_edited_manifest_is_one_line(edited: str, words: str, tmp_path: Path) -> None:
    """A line of the manifest that was changed by hand is named in one line, whatever show should write."""
    root = tmp_path / "c"
    assert run("make", root, "--samples", 5, "--damage", "0", "--oddities", "0", "--size", "64", "-q").exit_code == 0
    lines = (root / "manifest.badbatch").read_text().splitlines()
    (root / "manifest.badbatch").write_text("\n".join([*lines[:2], edited, *lines[3:]]) + "\n")
    for more in ((), ("--html", tmp_path / "x.html"), ("--png", tmp_path / "x.png")):
        shown = run("show", root, *more)
        assert (shown.exit_code, shown.output.count("\n")) == (2, 1), shown.output
        assert words in shown.output
        assert "badbatch corpus verify" in shown.output
    assert sorted(os.listdir(tmp_path)) == ["c"]


@pytest.mark.parametrize(("old", "new"), [('"counts"', '"sums"'), ('"samples": 5,\n  "seed"', '"smaples": 5,\n  "seed"')])
def test_show_of_an_edited_corpus_json_is_one_line(old: str, new: str, tmp_path: Path) -> None:
    """A corpus.badbatch that was changed by hand, and cannot be read, is named in one line."""
    root = tmp_path / "c"
    assert run("make", root, "--samples", 5, "--damage", "0", "--oddities", "0", "--size", "64", "-q").exit_code == 0
    text = (root / "corpus.badbatch").read_text()
    assert old in text
    (root / "corpus.badbatch").write_text(text.replace(old, new))
    shown = run("show", root, "--html", tmp_path / "x.html")
    assert (shown.exit_code, shown.output.count("\n")) == (2, 1), shown.output
    assert "corpus.badbatch" in shown.output


def test_options_are_parsed_as_they_are_written() -> None:
    """Shares, sizes and faults are read in each of their forms."""
    assert tuple(map(parse_share, ("5%", "0.05", "100 %", "0"))) == (0.05, 0.05, 1.0, 0.0)
    assert (parse_size("256x192"), parse_size("64")) == ((256, 192), (64, 64))
    assert parse_choice("zero-tail(kept=0.5):2.5") == Choice("zero-tail", 2.5, {"kept": 0.5})
    assert parse_choice("progressive-cut(at=0.5)").parameters == {"at": "0.5"}
    for wrong in ("a:b:c", "zero-tail(kept)", "(x=1)", "zero-tail:much"):
        with pytest.raises(UserError):
            parse_choice(wrong)


def crash(data: bytes) -> np.ndarray:
    """A decoder that kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return np.zeros(1)


def test_a_decoder_that_dies_is_a_line_of_the_table() -> None:
    """A decoder that crashes runs in a separate process, and the table says how it died."""
    assert _apart(Column("crash", "os", "none", crash), b"a", b"b") == "dies (signal 9)"
    assert _cell("lossy: 3.0% of the pixels differ") == "**damaged**: 3.0% of the pixels differ"
    assert _cell("raises OSError: image file is truncated") == "raises OSError"
