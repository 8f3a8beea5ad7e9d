"""Where the folders of trials are kept, and under which names."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...harness.errors import UserError
from ...harness.trial import endings
from ...harness.trial.history import History
from ...harness.trial.snapshots import add_stored
from ...harness.trial.spec import TrialSpec
from ..judging.verdict import Mark, Verdict

RELATION = "relation.json"
"""Names the relation in a folder that holds its trials."""
RELATION_FORMAT = 1
_NO_RECORD = ("tmp", "rendezvous*", "attempts-*")


class Artifacts:
    """Keeps the folders of failing trials, or of all.

    Args:
        directory: the user's current directory; names are relative to it.
        keep: where all are kept.
        failures: where failing ones are kept, unless ``keep`` keeps all.
        prefix: begins the names of kept folders, for several loaders that share one.

    Raises:
        UserError: ``keep`` is not a writable folder.
    """

    def __init__(self, directory: str, keep: Path | None, failures: Path | None, prefix: str) -> None:
        self._directory = directory
        self._home = keep or failures
        self._all = keep is not None
        self._prefix = prefix
        self.trouble = ""
        """Why folders could not be kept, as one line; empty: all were kept that had to be."""
        if keep is not None:
            _make_writable(Path(directory) / keep)

    def name(self, spec: TrialSpec, relation: str = "") -> str | None:
        """The name of a trial's folder, if it will be kept; None: nothing is kept.

        Args:
            relation: for the folder that holds the trials of this relation; ``spec`` is then the trial of which it is asked.
        """
        if self._home is None:
            return None
        name = self._prefix + slug(f"{spec.id.partition('#')[0]}-{relation}")
        return os.path.relpath(os.path.join(self._directory, self._home, name), self._directory)

    def keep(self, folder: Path, name: str | None, failed: bool, here: bool, remove: bool = True) -> Path | None:
        """Keep the folder of a trial (of its last failing run) if it should be kept.

        Args:
            here: by this process; otherwise another process keeps its own record of the same trial in that place.
            remove: remove the original.
        """
        kept = None
        if name is not None and (failed or self._all):
            kept = self._kept(name, here, functools.partial(_copy_trial, folder))
        if remove:
            shutil.rmtree(folder, ignore_errors=True)
        return kept

    def add(self, write: Callable[[], None]) -> None:
        """Write something beside a kept record."""
        try:
            write()
        except OSError as error:
            self.trouble = self.trouble or f"the context of a kept trial is not stored: {_why(error)}"

    def keep_relation(self, name: str | None, relation: str, records: Mapping[str, Path], here: bool) -> Path | None:
        """Keep the trials of a failing relation in one folder, which ``badbatch replay`` and ``badbatch judge`` take.

        Args:
            records: from each role to the record of its trial.
            here: by this process, as in :meth:`keep`.
        """
        if name is None:
            return None
        return self._kept(name, here, functools.partial(_copy_relation, relation, records))

    def _kept(self, name: str, here: bool, copy: Callable[[Path], None]) -> Path | None:
        kept = Path(self._directory) / name
        if here:
            try:
                copy(kept)
                if not self._all:
                    _keep_out_of_git(kept.parent)
            except OSError as error:  # the finished run is worth more than its folders
                self.trouble = self.trouble or f"folders of trials are not kept: {kept}: {_why(error)}"
                return None
        return None if self.trouble and not here else kept


def keep_pictures(history: History, verdicts: Sequence[Verdict]) -> None:
    """Put the stored pictures of the samples that a violation names beside those that arrived, in the folder of a failing trial."""
    blamed = [s for v in verdicts if v.mark is Mark.FAIL for s in (*v.lost, *v.witnesses, *v.duplicated)]
    if history.folder is not None and history.spec.root is not None:
        add_stored(Path(history.folder), history.spec.root, blamed)


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"cannot keep trials in {folder}: {_why(error)}") from error


def _copy_trial(folder: Path, target: Path) -> None:
    """Copy a trial's folder, over an earlier one of the same name.

    Raises:
        OSError: it cannot be written there, or what is there is not a trial and must not be replaced.
    """
    _must_be_ours(target, endings.TRIAL)
    try:
        shutil.rmtree(target, ignore_errors=True)
        copy_record(folder, target)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)  # an incomplete trial cannot be run again
        raise


def _copy_relation(relation: str, records: Mapping[str, Path], target: Path) -> None:
    """Put the trials of a relation in one folder, over an earlier one of the same name.

    Raises:
        OSError: as :func:`_copy_trial`.
    """
    _must_be_ours(target, RELATION)
    try:
        shutil.rmtree(target, ignore_errors=True)
        write_relation(target, relation, list(records))
        for role, record in records.items():
            copy_record(record, target / role)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        raise


def write_relation(folder: Path, relation: str, roles: Sequence[str]) -> None:
    """Make the folder of a relation, and write which relation it is; the trials belong into folders named by their roles.

    Args:
        roles: the role of the trial that is asked about comes first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = {"badbatch_relation": RELATION_FORMAT, "relation": relation, "roles": list(roles)}
    (folder / RELATION).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _must_be_ours(target: Path, mark: str) -> None:
    if os.path.lexists(target) and (target.is_symlink() or not (target / mark).exists()):
        raise FileExistsError(errno.EEXIST, "there is something else with this name: remove it, or rename it")


def copy_record(folder: Path, target: Path) -> None:
    """Copy the record of a trial, without what its processes left in its temporary folder.

    Raises:
        OSError: it cannot be read or written.
    """
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*_NO_RECORD))


def _why(error: OSError) -> str:
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):  # of copytree: one entry a file
        return str(error.args[0][0][-1])
    return error.strerror or str(error)


def _keep_out_of_git(home: Path) -> None:
    """Keep a folder that badbatch made by itself out of the user's repository."""
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by badbatch: the folders of failing trials.\n*\n", encoding="utf-8")


def slug(name: str) -> str:
    """A name as part of a path: ``one-bad[workers=2,ranks=2]`` becomes ``one-bad-w2-r2``."""
    short = re.sub(r"workers=", "w", re.sub(r"ranks=", "r", re.sub(r"source=", "", name)))
    return re.sub(r"[^A-Za-z0-9_.]+", "-", short).strip("-")
