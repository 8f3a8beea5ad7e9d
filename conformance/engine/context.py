"""What a suite knows of a kept trial from other trials, stored beside its record: judged alone, it then gets the same diagnosis."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from ...harness.errors import UserError
from ...harness.plain import Plain
from ...harness.trial.spec import TrialSpec
from ..diagnoses.comparing import compared
from ..judging.verdict import Entry, Mark, Verdict
from ..report.result import TrialResult

CONTEXT = "context.json"


@dataclasses.dataclass(frozen=True)
class Context(Plain):
    """What a suite knows of one trial from others."""

    clean: str = ""
    """Why the loader failed the clean scenario in this topology; empty: it did not."""
    without_workers: tuple[Entry, ...] = ()
    """What failed in the same scenario, source and ranks without workers."""

    def applied(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """The verdicts of the trial, compared with what failed without workers."""
        return compared(verdicts, [Verdict.of(verdict.loader, entry) for verdict in verdicts[:1] for entry in self.without_workers])


def read(folder: Path) -> Context:
    """The context of a stored trial; an empty one where none was stored.

    Raises:
        UserError: the file is damaged.
    """
    file = folder / CONTEXT
    try:
        return Context.from_json(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Context()
    except (ValueError, OSError, UserError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def write(folder: Path, context: Context) -> None:
    """Store the context of a trial beside its record, unless there is nothing to store.

    Raises:
        OSError: it cannot be written.
    """
    if context != Context():
        (folder / CONTEXT).write_text(json.dumps(context.to_json(), indent=1) + "\n", encoding="utf-8")


def belong_together(one: TrialSpec, other: TrialSpec) -> bool:
    """Whether one of them is the trial without workers with which the other one, with workers, is compared."""
    same = (one.scenario, one.source, one.topology.ranks) == (other.scenario, other.source, other.topology.ranks)
    return same and bool(one.topology.workers) != bool(other.topology.workers)


def connect(one: TrialResult, other: TrialResult) -> None:
    """Store what failed in the trial without workers in the folder of the one with workers, if that is kept.

    Raises:
        OSError: it cannot be written.
    """
    alone, with_workers = sorted((one, other), key=lambda result: result.spec.topology.workers)
    failed = tuple(Entry.from_json(verdict.to_json()) for verdict in alone.verdicts if verdict.mark is Mark.FAIL)
    if failed and with_workers.folder is not None and with_workers.folder.is_dir():
        write(with_workers.folder, dataclasses.replace(read(with_workers.folder), without_workers=failed))
