"""One recorded trial, judged by itself, for ``badbatch judge`` and ``badbatch replay``."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...harness.contract.choices import Isolation
from ...harness.errors import UserError
from ...harness.processes.supervisor import Supervisor
from ...harness.sources.base import find as find_source
from ...harness.trial import endings
from ...harness.trial.event_log import Kind
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from ..judging.accounting import account
from ..judging.doubts import not_carried
from ..judging.expectation import expect
from ..judging.ledger import Stop
from ..judging.observed import Observed, observe
from ..judging.verdict import Verdict
from ..report.model import Report
from ..report.observations import measured
from ..report.result import TrialResult
from ..report.run import Run
from . import context as contexts
from .artifacts import keep_pictures
from .context import Context
from .judge import judge


def again(folder: str | Path) -> str:
    """The command that runs a trial again, quoted for the shell."""
    return f"badbatch replay {shlex.quote(str(folder))}"


def trial_file(path: Path) -> Path:
    """The trial's file, for a path to the file or to its folder.

    Raises:
        UserError: neither.
    """
    found = path / endings.TRIAL if path.is_dir() else path
    if not found.is_file():
        raise UserError(f"{path} is no trial: give the folder of a trial, or its trial.json")
    return found


def judge_folder(folder: Path) -> tuple[Report, History]:
    """Judge a recorded trial again, without starting a process.

    Raises:
        UserError: the folder contains no trial, or one that has not been run.
    """
    history = read_record(folder)
    return report_on(history, {}, "recorded", context=contexts.read(trial_file(folder).parent)), history


def read_record(folder: Path) -> History:
    """A recorded trial.

    Raises:
        UserError: the folder holds no trial, or none that has been run.
    """
    home = trial_file(folder).parent
    history = History.load(home)
    if not len(history.events) and not (home / endings.ENDED).exists():
        raise UserError(f"{folder} contains a trial that has not been run: {again(folder)} runs it")
    return history


def replay(
    path: Path,
    keep: Path | None = None,
    isolation: Isolation = "auto",
    keep_corpus: Path | None = None,
) -> tuple[Report, History]:
    """Run exactly a stored trial again, and judge it.

    Args:
        keep: the folder for the new record; None: it is removed.
        keep_corpus: the folder in which the corpus of the trial is made and kept; None: it is removed.

    Raises:
        UserError: no trial, a folder that is not empty, a trial without a corpus, or a loader that cannot be imported.
    """
    spec = read_trial(path)
    must_be_new(keep, "record")
    must_be_new(keep_corpus, "corpus")
    source = find_source(spec.source)
    if keep_corpus is not None:
        spec = source.make_again(spec, keep_corpus)
    with tempfile.TemporaryDirectory(prefix="badbatch-") as scratch:
        folder = Path(scratch) / "trial" if keep is None else keep
        with Supervisor(spec.loader, spec.directory, as_recorded(path, isolation)) as supervisor:
            history = supervisor.run(source.restore(spec, Path(scratch)), folder)
            # Whether the loader is clean today is not known.
            context = dataclasses.replace(contexts.read(trial_file(path).parent), clean="")
            if keep is not None:
                keep_pictures(history, judge(history))
                contexts.write(keep, context)
            return report_on(history, supervisor.versions, supervisor.isolation, kept=keep is not None, context=context), history


def as_recorded(path: Path, isolation: Isolation) -> Isolation:
    """How to start a stored trial: as it was started before, unless the user chose."""
    home = trial_file(path).parent
    if isolation != "auto" or not (home / endings.ENDED).exists():
        return isolation
    return "spawn" if History.load(home).ended.isolation == "spawn" else isolation


def read_trial(path: Path) -> TrialSpec:
    """A stored trial, with a folder that exists to import its loader from.

    Raises:
        UserError: there is none.
    """
    spec = TrialSpec.read(trial_file(path))
    if Path(spec.directory).is_dir():
        return spec
    return dataclasses.replace(spec, directory=str(Path.cwd()))  # it was recorded on another machine, or the folder has moved


def must_be_new(target: Path | None, what: str) -> None:
    """A folder that is given for something new is empty, or not there.

    Raises:
        UserError: there is something in it.
    """
    if target is not None and target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise UserError(f"{target} is not empty: give a new folder for the {what}")


def report_on(
    history: History, versions: dict[str, str], isolation: str, *, kept: bool = True, context: Context | None = None
) -> Report:
    """A report over one trial.

    Args:
        context: what a suite knew of it from other trials.
    """
    context = context or Context()
    folder = Path(history.folder) if history.folder and kept else None
    replay = again(folder) if folder is not None else ""
    verdicts = context.applied(judge(history, clean=context.clean, replay=replay))
    spec = history.spec
    result = trial_result(history, verdicts, folder)
    return Report(
        loader=spec.loader,
        contracts={spec.source: spec.contract},
        versions=versions,
        seed=spec.seed,
        trials=(result,),
        verdicts=tuple(verdicts),
        isolation=isolation,
        run=Run.now(spec.samples, spec.batch_size),
    )


def trial_result(history: History, verdicts: Sequence[Verdict], folder: Path | None) -> TrialResult:
    """How many of the expected samples arrived in the first epoch, and how the trial ended."""
    expected = expect(history.spec)
    ledger = account(history, expected)
    epoch = ledger.first
    return TrialResult(
        spec=history.spec,
        verdicts=tuple(verdicts),
        seconds=history.ended.seconds,
        ended=ending(history, epoch.stops),
        delivered=int(np.count_nonzero(epoch.arrivals)),
        raised=len(history.of(Kind.RAISED)),
        skipped=epoch.reported_total or 0,
        arrivals_expected=int(np.count_nonzero(expected.good)) - expected.drop_budget,
        folder=folder,
        observed=Observed()
        if not_carried(history)
        else dataclasses.replace(observe(history, ledger, expected), more=measured(history, ledger, expected)),
    )


def ending(history: History, stops: tuple[Stop, ...]) -> str:
    """How a trial ended, in a word or two."""
    if history.ended.cut or any(code for code in history.ended.ranks):
        return str(history.ended)
    if Stop.NEVER_BEGAN in stops:
        return "never began"
    return "gave up" if Stop.CAPPED in stops else "ended"
