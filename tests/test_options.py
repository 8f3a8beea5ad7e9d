"""Options are in one table, are converted and checked once, and a wrong value names its origin."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from badbatch.conformance import scenarios
from badbatch.conformance.commands.options_page import documentation
from badbatch.conformance.options import BY_NAME, OPTIONS, Options, to_options
from badbatch.harness.errors import UserError


def test_every_field_has_one_option() -> None:
    """Each field of Options is set by exactly one option, and no option sets what is not there."""
    fields = [field.name for field in dataclasses.fields(Options)]
    assert sorted(option.field for option in OPTIONS if option.field) == sorted(fields)


def test_names_follow_from_one() -> None:
    """Flags and ini keys are made from the option's name."""
    option = BY_NAME["batch-size"]
    assert (option.flag_for_pytest, option.flag_for_cli, option.ini) == (
        "--loader-batch-size",
        "--batch-size",
        "loader_batch_size",
    )
    assert BY_NAME["loader"].flag_for_pytest == "--loader"


def test_what_is_left_out() -> None:
    """A glob to leave out wins over one that selects; one that matches nothing, or that leaves nothing, is refused."""
    names = ["one-bad", "one-good", "nan"]
    assert scenarios.select(names, ["one-*"], "scenario", ["*-bad"]) == ["one-good"]
    assert scenarios.select(names, [], "scenario", ["nan"]) == ["one-bad", "one-good"]
    with pytest.raises(UserError, match="unknown scenario 'nam'; did you mean 'nan'"):
        scenarios.select(names, [], "scenario", ["nam"])
    with pytest.raises(UserError, match=r"no scenario is left: the globs to leave out \(n\*\) match all"):
        scenarios.select(names, ["nan"], "scenario", ["n*"])


def test_all_values() -> None:
    """Every option of the suite is converted from the text that a user types."""
    found = to_options(
        {
            "workers": "0, 3",
            "ranks": "2",
            "samples": "80",
            "batch-size": "8",
            "quick": "false",
            "scenario": ["one-*", "nan"],
            "not-scenario": ["one-bad"],
            "source": ["stream", "*folder"],
            "check": ("no-*",),
            "not-check": ["no-leftovers"],
            "timeout": "0.5",
            "deadline": "12",
            "start-method": "spawn,default,spawn",
            "persistent-workers": "always",
            "isolation": "spawn",
            "jobs": "3",
            "seed": "11",
            "repeat": "20",
            "known": ["torch", "mine.toml"],
            "keep": "kept",
        }
    )
    assert found == Options(
        workers=(0, 3),
        ranks=(2,),
        samples=80,
        batch_size=8,
        scenarios=("one-*", "nan"),
        not_scenarios=("one-bad",),
        sources=("stream", "*folder"),
        checks=("no-*",),
        not_checks=("no-leftovers",),
        timeout=0.5,
        deadline=12.0,
        start_methods=("spawn", None),
        persistent_workers="always",
        isolation="spawn",
        jobs=3,
        seed=11,
        repeat=20,
        known=("torch", "mine.toml"),
        keep=Path("kept"),
    )


def test_paths_of_an_ini_file_start_from_its_folder() -> None:
    """A relative path in an ini file starts from that file's folder; the name of a shipped known file is not a path."""
    folder = Path("/project")
    values = {"known": ["torch", "mine.toml", "sub/other", "/abs.toml"], "keep": "kept"}
    found = to_options(values, folders={"known": folder, "keep": folder})
    assert found.known == ("torch", "/project/mine.toml", "/project/sub/other", "/abs.toml")
    assert found.keep == Path("/project/kept")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("workers", "two", "'two' is not a whole number"),
        ("workers", "0,-1", "a trial cannot have -1 workers"),
        ("workers", ",", "is empty"),
        ("ranks", "0", "a trial cannot have 0 ranks"),
        ("samples", "4.5", "'4.5' is not a whole number"),
        ("samples", "7", "must be at least 8, not 7"),
        ("batch-size", "0", "must be at least 1, not 0"),
        ("timeout", "soon", "'soon' is not a number of seconds"),
        ("timeout", "0", "must be a number of seconds above 0, not 0"),
        ("deadline", "inf", "must be a number of seconds above 0, not inf"),
        ("deadline", "nan", "must be a number of seconds above 0, not nan"),
        ("start-method", "frok", "did you mean 'fork'?"),
        ("isolation", "thread", "'thread' is none of auto, fork, spawn"),
        ("jobs", "0", "must be at least 1, not 0"),
        ("seed", "-1", "must be at least 0, not -1"),
        ("repeat", "0", "must be at least 1, not 0"),
    ],
)
def test_wrong_values(name: str, text: str, said: str) -> None:
    """A wrong value is reported in one line that begins with its origin."""
    where = f"loader_{name} in pytest.ini"
    with pytest.raises(UserError) as caught:
        to_options({name: text}, {name: where})
    assert str(caught.value).startswith(f"{where}: ") and said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_problems_at_once() -> None:
    """Every wrong value is reported, each in its own line."""
    with pytest.raises(UserError) as caught:
        to_options({"workers": "x", "ranks": "0", "seed": "1"}, {"workers": "--workers", "ranks": "--ranks"})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["--workers", "--ranks"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"timeout": "20"}, "--timeout and deadline: a trial of 30 s leaves no time to see a timeout of 20 s"),
        ({"samples": "8", "batch-size": "5"}, "--samples and --batch-size: 8 samples make fewer than two batches of 5"),
        ({"workers": "0", "start-method": "spawn"}, "--workers and --start-method: without workers the start method"),
    ],
)
def test_contradictions(values: dict[str, str], said: str) -> None:
    """Two options that contradict each other are reported in one line that names both."""
    with pytest.raises(UserError) as caught:
        to_options(values, {name: f"--{name}" for name in values})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "wrong", [{"workers": ()}, {"timeout": 0.0}, {"isolation": "no"}, {"timeout": 20.0}, {"repeat": 0}]
)
def test_the_library_door_checks_as_well(wrong: dict[str, object]) -> None:
    """Options made in code follow the same rules."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        Options(**wrong)  # type: ignore[arg-type]


def test_help_says_defaults_and_repetition() -> None:
    """The help of pytest and of the command is made from the table, with the default and whether an option may be repeated."""
    assert BY_NAME["samples"].full_help.endswith("[default: 40]")
    assert BY_NAME["scenario"].full_help.endswith("(may be given more than once)")


def test_documentation_has_every_option() -> None:
    """The page on options names each flag, ini key and default."""
    page = documentation()
    for option in OPTIONS:
        names = [option.flag_for_pytest] if "pytest" in option.places else [option.flag_for_cli]
        names += [option.ini] if "pytest" in option.places and option.in_ini else []
        assert all(f"`{name}`" in page for name in names)
        assert not option.default or f"`{option.default}`" in page


def test_the_table_is_light() -> None:
    """Reading the table imports nothing that costs a pytest user without a loader anything."""
    code = (
        "import sys; import badbatch.conformance.options\n"
        "heavy = {'torch', 'numpy', 'rich', 'click', 'jinja2', 'psutil'} & set(sys.modules); sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
