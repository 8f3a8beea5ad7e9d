"""Names of the suite's items in pytest's own JUnit file: those of ``badbatch run --junit`` (docs/report-schema.md)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from ..report.junit import case_name

xml_key: Any = None
with contextlib.suppress(
    ImportError
):  # where pytest stores its writer of JUnit files; not a part of its public interface
    from _pytest.junitxml import xml_key


def name_case(config: pytest.Config, report: pytest.TestReport) -> None:
    """Name the test case of an item; pytest would split its node id like that of a function with parameters."""
    xml = None if xml_key is None else config.stash.get(xml_key, None)
    if xml is None:
        return
    root, trial, check = report.nodeid.split("::")
    classname, name = case_name(root, trial, check)
    reporter = xml.node_reporter(report)
    reporter.add_attribute("classname", f"{xml.prefix}.{classname}" if xml.prefix else classname)
    reporter.add_attribute("name", name)
