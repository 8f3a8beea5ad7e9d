"""The docs page on the options (docs/options.md), from the table."""

from __future__ import annotations

from ..options import OPTIONS

_WHAT_RUNS = """
## What pytest runs

Your own tests run whenever pytest would collect them without badbatch. The suite is added to them:

| command | your own tests | the suite |
| --- | --- | --- |
| `pytest`, with `loader` in the ini file | all that pytest collects (`testpaths`, or the current folder) | runs |
| `pytest --loader …` | all that pytest collects | runs |
| `pytest test_a.py`, with `loader` in the ini file | `test_a.py` | – |
| `pytest --loader … test_a.py` | `test_a.py` | runs |
| `pytest 'badbatch::one-bad[workers=2]'` | – | the named node ids |
| `pytest 'badbatch::one-bad[workers=2]' test_a.py` | `test_a.py` | the named node ids |
| `pytest --loader-only` | – | runs |
| `pytest --loader-off` | all that pytest collects, or the paths that are given | – |

`--loader` in `addopts` or in `PYTEST_ADDOPTS` counts as the ini key does. `--loader-only` together with paths is refused, and so is
`--loader-off` together with node ids of the suite. It is the same with pytest-xdist.
"""


def documentation() -> str:
    """The docs page about the options, in Markdown."""
    lines = [
        "# Options",
        "",
        "The same options for `pytest --loader …` and for `badbatch run`; the ini keys belong in pytest's own file",
        "(`pytest.ini`, `pyproject.toml`, `tox.ini`). A flag goes before an ini key.",
        "",
        "| pytest | ini key | `badbatch run` | value | default | what it does |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for option in OPTIONS:
        pytest_flag = f"`{option.flag_for_pytest}`" if "pytest" in option.places else "–"
        ini = f"`{option.ini}`" if "pytest" in option.places and option.in_ini else "–"
        command = (
            f"`{option.flag_for_cli}`"
            if "command" in option.places
            else "an argument"
            if option.name == "loader"
            else "–"
        )
        metavar = "`" + option.metavar.replace("|", "\\|") + "`" if option.metavar else ""
        repeat = " May be given more than once." if option.repeatable else ""
        lines.append(
            f"| {pytest_flag} | {ini} | {command} | {metavar} | {f'`{option.default}`' if option.default else ''} "
            f"| {option.help}{repeat} |"
        )
    return "\n".join(lines) + "\n" + _WHAT_RUNS
