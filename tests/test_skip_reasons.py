"""The reasons that a loader gives for its skips are recorded, in a real trial, and shown."""

from __future__ import annotations

from badbatch.conformance.engine.single import report_on
from badbatch.conformance.report import terminal
from badbatch.harness.faults.raises import Raise
from history_dsl import SKIPS
from staging import ON_STAGE, Run

pytestmark = ON_STAGE


def test_reasons_are_recorded_as_the_loader_gives_them(run: Run) -> None:
    """Reasons come from on_skip and from a mapping in loader.skipped; empty ones are counted, and the report says so."""
    history = run("reasoned", {5: Raise(), 9: Raise()}, contract=SKIPS)
    report = report_on(history, {}, "fork")
    found = report.trials[0].observed
    assert found.reasons["too short"] == 2
    (of_the_error,) = (reason for reason in found.reasons if reason != "too short")
    assert ": " in of_the_error and found.reasons[of_the_error] == 1  # its class and its message
    assert found.without_reason == 2  # on_skip(9, "") and None in the mapping
    text = " ".join(terminal.render(report).split())
    assert "too short (2)" in text and "2 skips with an empty reason" in text
