"""The verdicts as JUnit XML, for servers that collect test results; pytest writes its own."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ..judging.verdict import Mark, Verdict
from .model import Report
from .printable import printable
from .terminal import render_failure

ROOT = "badbatch"


def dumps(reports: Sequence[Report]) -> str:
    """One test suite for each report, one test case for each verdict, with its trial and check as properties."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        root.append(_suite(report, ROOT if len(reports) == 1 else f"{ROOT}[{printable(report.loader)}]"))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, root: str) -> ElementTree.Element:
    summary = report.summary
    suite = ElementTree.Element(
        "testsuite",
        name=f"badbatch {printable(report.loader)}",
        tests=str(len(report.verdicts)),
        failures=str(summary["fail"]),
        errors=str(summary["inconclusive"]),
        skipped=str(summary["n/a"] + summary["known"]),
        time=f"{sum(trial.seconds for trial in report.trials):.3f}",
    )
    for verdict in report.verdicts:
        _case(suite, verdict, root)
    return suite


def _case(suite: ElementTree.Element, verdict: Verdict, root: str) -> None:
    classname, name = case_name(root, verdict.trial, verdict.check)
    case = ElementTree.SubElement(suite, "testcase", classname=classname, name=name)
    properties = ElementTree.SubElement(case, "properties")
    for name, value in properties_of(verdict).items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    if verdict.mark is Mark.FAIL:
        said = f"{verdict.happened}; raised {verdict.error}" if verdict.error else verdict.happened
        failure = ElementTree.SubElement(case, "failure", message=printable(said))
        failure.text = render_failure(verdict)
    elif verdict.mark is Mark.INCONCLUSIVE:  # an inconclusive verdict must not look like a pass
        ElementTree.SubElement(case, "error", message=printable(f"inconclusive: {verdict.reason}"))
    elif verdict.mark is not Mark.PASS:
        ElementTree.SubElement(case, "skipped", message=printable(f"{verdict.mark.value}: {verdict.reason}"))


def case_name(root: str, trial: str, check: str) -> tuple[str, str]:
    """The class name and the name of a verdict's test case, in the JUnit files of badbatch and of pytest.

    Args:
        root: ``badbatch``, or ``badbatch[LOADER]`` if the run has several loaders.
    """
    return f"{root}.{trial}", check


def properties_of(verdict: Verdict) -> dict[str, str]:
    """The properties of a verdict's test case, in the JUnit files."""
    found = {
        "scenario": verdict.scenario,
        "source": verdict.source,
        "topology": str(verdict.topology),
        "check": verdict.check,
        "verdict": verdict.mark.value,
    }
    if verdict.trials:
        found["trials"] = verdict.compared
    if verdict.replay:
        found["replay"] = verdict.replay
    return {name: printable(value) for name, value in found.items()}
