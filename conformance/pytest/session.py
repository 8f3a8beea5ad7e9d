"""What pytest does for the suite if ``--loader`` is given: collect, run, gather, report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import shutil
import stat
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ...harness.errors import HarnessError, UserError
from ...harness.stopping import stoppable
from .. import known
from ..engine.artifacts import slug
from ..engine.suite import Suite
from ..judging.verdict import Verdict
from ..options import Options
from ..report.broken import MOST_FIRST
from ..report.digest import digest
from ..report.files import check_target, write
from ..report.formats import report_formats
from ..report.model import Report
from ..report.terminal import render
from .items import Group, TrialCheck
from .junit import name_case
from .selection import ROOT
from .timeouts import Timeouts

NodeId: Any = None
with contextlib.suppress(ImportError):  # before pytest 9 a node id is a plain string
    from _pytest import nodeid as _nodeid

    NodeId = _nodeid.NodeId


class Session:
    """Everything that pytest does for the suite, if ``--loader`` is given."""

    def __init__(
        self, config: pytest.Config, loaders: list[str], options: Options, named: list[str], files: dict[str, Path]
    ) -> None:
        self._config = config
        self._loaders = loaders
        self._options = options
        self._named = named
        self.timeouts = Timeouts(config, options)
        self._files = files
        self._suites: dict[str, Suite] = {}
        self._headers: dict[str, dict[str, Any]] = {}
        self._sent: set[str] = set()
        self._shown: dict[str, list[dict[str, Any]]] = {}
        self._own_failures: list[pytest.TestReport] = []
        self._shared: Path | None = None
        self._reports: list[Report] | None = None
        self._unwritten: list[str] = []
        self._notes: dict[str, None] = {}
        self._interrupted = False
        self._open = contextlib.ExitStack()

    def pytest_collection(self) -> None:
        """Find out before the run that a report could not be written."""
        try:
            for name, target in self._files.items():
                check_target(target, self._config.invocation_params.dir, report_formats()[name])
        except UserError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Treat SIGTERM and SIGHUP like Ctrl-C.

        Under xdist check the loaders first, so that a bad one is reported once, in one line.
        """
        if threading.current_thread() is threading.main_thread() and not hasattr(self._config, "workerinput"):
            self._open.enter_context(stoppable())
        if self._config.getoption("numprocesses", None) and not hasattr(self._config, "workerinput"):
            for loader in self._loaders:
                suite = self._suite(loader)
                suite.close()
                self._suites.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add one item for each check of each trial, before other plugins select among them."""
        found: list[pytest.Item] = []
        for loader in self._loaders:
            suite = self._suite(loader, prepare=not self._config.getoption("collectonly"))
            root = ROOT if len(self._loaders) == 1 else f"{ROOT}[{loader}]"
            top = Group.from_parent(session, name=root, nodeid=root)
            for spec in suite.specs():
                trial = Group.from_parent(top, name=spec.id, nodeid=f"{root}::{spec.id}")
                for name in suite.checks_for(spec):
                    found.append(
                        TrialCheck.from_parent(
                            trial, name=name, nodeid=f"{trial.nodeid}::{name}", suite=suite, spec=spec
                        )
                    )
        if self._named:
            unknown = [arg for arg in self._named if not any(_is_under(item.nodeid, arg) for item in found)]
            if unknown:
                raise pytest.UsageError(f"not found: {unknown[0]}")
            found = [item for item in found if any(_is_under(item.nodeid, arg) for arg in self._named)]
        items.extend(found)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """After all plugins have selected items: skip trials without any item left."""
        for loader, suite in self._suites.items():
            left = [item for item in session.items if isinstance(item, TrialCheck) and item.loader == loader]
            suite.only({(item.spec.id, item.name) for item in left})
            self.timeouts.set_on(left)

    def _suite(self, loader: str, prepare: bool = True) -> Suite:
        if loader not in self._suites:
            several = len(self._loaders) > 1
            suite = self._suites[loader] = Suite(
                loader,
                self._options,
                self._config.invocation_params.dir,
                failures=self._failures(),
                shared=None if (home := self._home_of_all()) is None else home / slug(loader),
                prefix=f"{slug(loader)}-" if several else "",
            )
            try:
                suite.start()
                if prepare:
                    suite.prepare()
            except (UserError, HarnessError) as error:
                self._close()
                raise pytest.UsageError(str(error)) from None
        return self._suites[loader]

    def _failures(self) -> Path | None:
        cache = getattr(self._config, "cache", None)
        if cache is None:
            return None
        try:
            return Path(str(cache.mkdir("badbatch")))
        except OSError as error:
            self._notes[f"folders of trials are not kept: {error.filename}: {error.strerror}"] = None
            return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist starts a worker: send it the folder through which the workers share the trials."""
        if self._shared is None:
            self._shared = Path(tempfile.mkdtemp(prefix="badbatch-xdist-"))  # its name cannot be guessed, and only this user can access it
        node.workerinput["badbatch_shared"] = str(self._shared)

    def _home_of_all(self) -> Path | None:
        """Under xdist: the folder through which the workers share the trials; None if each has to run its own."""
        given = getattr(self._config, "workerinput", {}).get("badbatch_shared")
        return Path(given) if given and _is_ours(Path(given)) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report: Any = yield
        if isinstance(item, TrialCheck) and report.when == "call" and item.result is not None:
            report.badbatch = item.told(self._sent)
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Separate words for verdicts that are neither passed nor failed."""
        told = getattr(report, "badbatch", None)
        if told is None or report.when != "call":
            return None
        mark = told["verdict"]["verdict"]
        if mark == "inconclusive":
            return "inconclusive", "?", "INCONCLUSIVE"
        if mark == "n/a":
            return "n/a", "-", "N/A"
        if mark == "known":
            return "known", "k", "KNOWN"
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what the items report; under xdist this also runs in the controller."""
        if report.nodeid.startswith((f"{ROOT}::", f"{ROOT}[")):
            if (
                NodeId is not None
            ):  # pytest 9 reads all after the first bracket as parameters
                path, *names = report.nodeid.split("::")
                report._id = NodeId(path=path, names=tuple(names))
            if report.when == "call" or report.failed:
                name_case(self._config, report)
        told = getattr(report, "badbatch", None)
        if told is not None:
            self._notes.update(dict.fromkeys(told["notes"]))
            self._shown.setdefault(told["loader"], []).append(told)
            if "header" in told:
                self._headers[told["loader"]] = told["header"]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, Any, Any]:
        """The suite's failures are printed once, in their own section: keep pytest's section from printing them again."""
        failed = terminalreporter.stats.get("failed", [])
        self._own_failures = [report for report in failed if hasattr(report, "badbatch")]
        kept = [report for report in failed if not hasattr(report, "badbatch")]
        if failed:
            terminalreporter.stats["failed"] = kept
        result = yield
        if failed:
            terminalreporter.stats["failed"] = failed  # for the counts in pytest's last line
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports. A run without failures still fails if something is inconclusive or stale."""
        self._close()
        if hasattr(self._config, "workerinput"):
            return
        self._interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        reports = self.reports()
        for name, target in self._files.items():
            if not reports or (self._interrupted and report_formats()[name].complete):
                continue
            try:
                write(name, target, reports, self._config.invocation_params.dir)
            except UserError as error:
                self._unwritten.append(str(error))
        if self._unwritten and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        undecided = any(report.summary.get("inconclusive") or report.stale_known for report in reports)
        if undecided and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def reports(self) -> list[Report]:
        """One report for each loader, from what the items reported; the same with and without xdist."""
        if self._reports is None:
            self._reports = [self._report(loader) for loader in self._loaders if loader in self._headers]
        return self._reports

    def _report(self, loader: str) -> Report:
        told = self._shown[loader]
        trials = {entry["trial"]["id"]: entry["trial"] for entry in told}
        data = {**self._headers[loader], "trials": list(trials.values()), "verdicts": [e["verdict"] for e in told]}
        report = Report.from_json(data)
        command = shlex.join(["pytest", *self._config.invocation_params.args])
        report = dataclasses.replace(report, run=dataclasses.replace(report.run, command=command))
        entries = [entry for name in self._options.known for entry in known.load(known.find(str(name)))]
        verdicts, stale = known.apply(report.verdicts, entries)
        notes = dict.fromkeys((*report.notes, *self._notes))
        if self._interrupted:  # an entry is not stale because its trial was not run
            notes[f"interrupted: {len(trials)} trial{'s have' if len(trials) != 1 else ' has'} a result"] = None
            stale = []
        return dataclasses.replace(report, verdicts=tuple(verdicts), stale_known=tuple(stale), notes=tuple(notes))

    def _close(self) -> None:
        for suite in self._suites.values():
            suite.close()

    def pytest_unconfigure(self) -> None:
        """Leave no process running, also after an interrupt or an internal error."""
        self._close()
        if self._shared is not None:
            shutil.rmtree(self._shared, ignore_errors=True)
        self._open.close()


def _place(report: Any) -> tuple[str, str, str]:
    """(loader, trial, check) of the report of one of the suite's items."""
    told = report.badbatch
    verdict = Verdict.from_json(told["loader"], told["verdict"])
    return verdict.loader, verdict.trial, verdict.check


def _is_ours(folder: Path) -> bool:
    """Whether a folder belongs to this user, and nobody else can write to it: only then is its content trusted."""
    try:
        found = folder.lstat()
    except OSError:  # a worker on another machine
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _is_under(nodeid: str, arg: str) -> bool:
    return nodeid == arg or nodeid.startswith(f"{arg}::")


class Summary:
    """Prints the suite's section inside pytest's summary, and returns its failures for pytest's list of failed items."""

    def __init__(self, session: Session) -> None:
        self._door = session

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for report in self._door.reports():
            terminalreporter.section(f"badbatch: {report.loader}", sep="=")
            terminalreporter.write(
                render(report, width=terminalreporter._tw.fullwidth, colour=terminalreporter.hasmarkup)
            )
            terminalreporter.line("")
        for problem in self._door._unwritten:
            terminalreporter.line(f"badbatch: {problem}", red=True)
        listed = self._listed(terminalreporter.config.get_verbosity())
        if listed:
            terminalreporter.stats.setdefault("failed", []).extend(listed)
        if left_out := len(self._door._own_failures) - len(listed):
            terminalreporter.line(f"{left_out} more failed items are shown above with their cause; -v lists them all")

    def _listed(self, verbosity: int) -> list[pytest.TestReport]:
        """The failed items that pytest lists: all, or if they are many, one for each promise to fix first."""
        failures = self._door._own_failures
        if verbosity > 0 or len(failures) <= MOST_FIRST:
            return failures
        wanted = {
            (report.loader, first.worst.verdict.trial, first.worst.verdict.check)
            for report in self._door.reports()
            for first in digest(report).first[:MOST_FIRST]
        }
        return [report for report in failures if _place(report) in wanted]
