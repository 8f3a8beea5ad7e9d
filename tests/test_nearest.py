"""The message about an unknown name: one function for all names that a user can misspell."""

from __future__ import annotations

from pathlib import Path

import pytest
from badbatch.conformance import scenarios
from badbatch.conformance.commands import cli
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.errors import UserError
from badbatch.harness.nearest import hint, near

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("jpeg-cut", ["jpeg-cut-end", "jpeg-cut-header", "jpeg-cut-scan"]),  # the beginning of names
        ("jpeg-cut-scam", ["jpeg-cut-scan"]),  # a slip of the keyboard
        ("jpeg-cut-*", ["jpeg-cut-end", "jpeg-cut-header", "jpeg-cut-scan"]),
        ("crc", ["png-wrong-crc"]),  # a part of a name
        ("No-Bytes", ["no-bytes"]),
        ("no_bytes", ["no-bytes"]),
        ("qqqqqq", []),
        ("*", []),
        ("", []),
    ],
)
def test_near_names(name: str, found: list[str]) -> None:
    """A beginning or a part of names matches these, and a typing mistake matches the most similar name."""
    assert found == near(name, disk_faults("imagefolder"))


def test_hints() -> None:
    """Near names are offered as a question; else a short list is given whole, and a long one by the command that shows it."""
    assert "; did you mean 'pad'?" == hint("pda", ("exact", "pad", "drop"))
    assert "; did you mean 'cut-a' or 'cut-b'?" == hint("cut", ("cut-b", "cut-a", "x"))
    assert "; known are exact, pad, drop" == hint("zzz", ("exact", "pad", "drop"))
    assert "" == hint("zzz", ())
    with pytest.raises(UserError, match="unknown scenario of map 'qqqqq'; badbatch list scenarios lists all"):
        scenarios.find("qqqqq")


def test_an_unknown_command_has_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt command of badbatch is answered like every other name."""
    assert cli._run(["comparre"]) == 2
    assert "No such command 'comparre'; did you mean 'compare'?" in capsys.readouterr().err


def test_one_function_finds_near_names() -> None:
    """No other module looks for near names by itself."""
    users = {
        path.relative_to(ROOT).as_posix()
        for folder in ("harness", "conformance")
        for path in (ROOT / folder).rglob("*.py")
        if "get_close_matches" in path.read_text("utf-8")
    }
    assert users == {"harness/nearest.py"}
