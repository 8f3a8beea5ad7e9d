"""The recorded trials of a relation, in one folder: what ``badbatch judge`` and ``badbatch replay`` do with it."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ...harness.contract.choices import Isolation
from ...harness.errors import UserError
from ...harness.processes.supervisor import Supervisor
from ...harness.sources.base import find as find_source
from ...harness.trial.history import History
from ...harness.trial.spec import TrialSpec
from .. import checks
from ..diagnoses.comparing import compared
from ..report.model import Report
from . import single
from .artifacts import RELATION, RELATION_FORMAT, keep_pictures, write_relation
from .judge import judge
from .relating import consequences, explained, named, record, relate, standing_alone


def judge_stored(path: Path) -> tuple[Report, list[History]]:
    """Judge a recorded trial, or the recorded trials of a relation, again, without starting a process.

    Args:
        path: the folder of a trial or of a relation, or the JSON file in it.

    Raises:
        UserError: it is neither, or it has not been run.
    """
    home = _home_of_relation(path)
    if home is None:
        report, history = single.judge_folder(path)
        return report, [history]
    relation, folders = _read(home)
    histories = {role: single.read_record(folder) for role, folder in folders.items()}
    return _report_on(relation, histories, {}, "recorded", home), list(histories.values())


def replay_stored(
    path: Path,
    keep: Path | None = None,
    isolation: Isolation = "auto",
    keep_corpus: Path | None = None,
) -> tuple[Report, list[History]]:
    """Run a stored trial, or all trials of a stored relation, again, and judge them.

    Args:
        keep: the folder for the new records; None: they are removed.
        keep_corpus: the folder in which the corpus of the trials is made, and stays; None: it is removed.

    Raises:
        UserError: what is stored there cannot be run, or a folder is not empty.
    """
    home = _home_of_relation(path)
    if home is None:
        report, history = single.replay(path, keep, isolation, keep_corpus)
        return report, [history]
    relation, folders = _read(home)
    single.must_be_new(keep, "records")
    single.must_be_new(keep_corpus, "corpus")
    specs = {role: single.read_trial(folder) for role, folder in folders.items()}
    first = specs[relation.subject]
    histories: dict[str, History] = {}
    with tempfile.TemporaryDirectory(prefix="badbatch-") as scratch:
        specs = _with_corpora(specs, Path(scratch), keep_corpus)
        if keep is not None:
            write_relation(keep, relation.id, list(specs))
        with Supervisor(first.loader, first.directory, single.as_recorded(folders[relation.subject], isolation)) as supervisor:
            for role, spec in specs.items():
                histories[role] = supervisor.run(spec, (Path(scratch) if keep is None else keep) / role)
                if keep is not None:
                    keep_pictures(histories[role], judge(histories[role]))
            report = _report_on(relation, histories, supervisor.versions, supervisor.isolation, keep)
    return report, list(histories.values())


def _home_of_relation(path: Path) -> Path | None:
    """The folder of a stored relation, for a path that names it or the file in it; None: it is no relation."""
    home = path.parent if path.name == RELATION else path
    return home if (home / RELATION).is_file() else None


def _read(home: Path) -> tuple[checks.Relation, dict[str, Path]]:
    """The relation that is stored in a folder, and from each role to the folder of its trial.

    Raises:
        UserError: the file is damaged, or this badbatch does not know the relation.
    """
    file = home / RELATION
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        version, name, roles = data.get("badbatch_relation"), str(data.get("relation")), [str(role) for role in data.get("roles", ())]
    except (ValueError, AttributeError, TypeError, OSError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error
    if version != RELATION_FORMAT:
        raise UserError(f'{file} is no relation of format {RELATION_FORMAT}: "badbatch_relation" is {version!r}')
    relation = checks.find(name)
    if not isinstance(relation, checks.Relation) or not roles or roles[0] != relation.subject:
        raise UserError(f"{file}: {name} with the roles {', '.join(roles) or 'none'} is no relation that this badbatch knows")
    return relation, {role: home / role for role in roles}


def _with_corpora(specs: Mapping[str, TrialSpec], scratch: Path, keep: Path | None) -> dict[str, TrialSpec]:
    """The trials with corpora that are there; trials over the same corpus share it again."""
    roots: dict[str | None, str | None] = {}
    found: dict[str, TrialSpec] = {}
    for role, spec in specs.items():
        if spec.root not in roots:
            source = find_source(spec.source)
            if keep is not None and roots:
                raise UserError(f"the trials read several corpora: replay one of them with --keep-corpus, as {next(iter(specs))}")
            made = source.make_again(spec, keep) if keep is not None else source.restore(spec, scratch / f"corpus-{role}")
            roots[spec.root] = made.root
        found[role] = dataclasses.replace(spec, root=roots[spec.root])
    return found


def _report_on(
    relation: checks.Relation, histories: Mapping[str, History], versions: dict[str, str], isolation: str, folder: Path | None
) -> Report:
    """A report over the trials of a relation."""
    reports = {
        role: single.report_on(history, versions, isolation, kept=folder is not None) for role, history in histories.items()
    }
    ids = named({role: history.spec for role, history in histories.items()})
    own = {ids[role]: reports[role].verdicts for role in histories}
    replay = single.again(folder) if folder is not None else ""
    verdict = relate(relation, {role: record(history) for role, history in histories.items()}, replay=replay)
    verdict = standing_alone(explained(relation, verdict, own))  # it is what this report is about
    subject = reports[relation.subject]
    verdicts = tuple(consequences(sorted((*subject.verdicts, verdict), key=lambda one: one.check), [verdict]))
    (result,) = subject.trials
    others = [report.trials[0] for role, report in reports.items() if role != relation.subject]
    trials = (dataclasses.replace(result, verdicts=verdicts), *others)
    return dataclasses.replace(subject, trials=trials, verdicts=tuple(compared(one for trial in trials for one in trial.verdicts)))
