"""Implements ``badbatch compare``: runs each loader, or reads its report, and puts the reports side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from ...harness.errors import UserError
from ..engine.suite import Suite
from ..options import Options
from ..report import jsonfile
from ..report.compared import Comparison, compare
from ..report.model import Report
from ..report.result import TrialResult


def is_report(name: str) -> bool:
    """Whether an argument names a stored report, and not a loader."""
    return name.endswith(".json") or Path(name).is_file()


def gather(
    names: Sequence[str],
    options: Options,
    on_begin: Callable[[str, int], None] | None = None,
    on_result: Callable[[TrialResult], None] | None = None,
    command: str = "",
) -> Comparison:
    """Run the suite over each loader, read each stored report, and compare.

    Every file is read and every loader imported before the first is run, so that a wrong name costs no run.

    Args:
        on_begin: called with each loader before it is run, with its number of trials.
        on_result: called with each trial that was judged.
        command: the command that started the comparison.

    Raises:
        UserError: fewer than two reports; a file without a report; a loader that cannot be imported or judged.
    """
    with contextlib.ExitStack() as stack:
        sources: list[tuple[str, list[Report] | Suite]] = []
        for name in names:
            if is_report(name):
                sources.append((name, jsonfile.read(Path(name))))
            else:
                sources.append((name, stack.enter_context(Suite(name, options, command=command))))
        if sum(len(source) if isinstance(source, list) else 1 for _, source in sources) < 2:
            raise UserError("a comparison needs two loaders or reports, or more")
        for suite in [source for _, source in sources if isinstance(source, Suite)]:
            suite.start()
        reports: list[Report] = []
        origins: list[str] = []
        for name, source in sources:
            found = _run(source, on_begin, on_result) if isinstance(source, Suite) else source
            reports += found
            origins += [name] * len(found)
        return compare(reports, origins)


def _run(
    suite: Suite,
    on_begin: Callable[[str, int], None] | None,
    on_result: Callable[[TrialResult], None] | None,
) -> list[Report]:
    if on_begin is not None:
        on_begin(suite.loader, len(suite.specs()))
    suite.prepare()
    report = suite.run(on_result)
    suite.close()
    return [report]
