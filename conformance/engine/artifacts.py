"""Where the folders of trials are kept, under which names."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ...harness.errors import UserError
from ...harness.trial.spec import TrialSpec


class Artifacts:
    """Keeps the folders of failing trials, or of all.

    Args:
        directory: the user's current one; names are relative to it.
        keep: where all are kept.
        failures: where failing ones are kept, unless ``keep`` keeps all.
        prefix: begins the names of kept folders, where several loaders share one.
    """

    def __init__(self, directory: str, keep: Path | None, failures: Path | None, prefix: str) -> None:
        self._directory = directory
        self._home = keep or failures
        self._all = keep is not None
        self._prefix = prefix

    def name(self, spec: TrialSpec) -> str | None:
        """The name of a trial's folder, if it comes to be kept; None: nothing is kept."""
        if self._home is None:
            return None
        name = self._prefix + slug(spec.id.partition("#")[0])
        return os.path.relpath(os.path.join(self._directory, self._home, name), self._directory)

    def keep(self, folder: Path, name: str | None, failed: bool, here: bool) -> Path | None:
        """Keep the folder of a trial (of its last failing run) where it is to be kept; remove it from where it was.

        Args:
            here: by this process; otherwise another keeps its own record of the same trial in that place.
        """
        kept = None
        if name is not None and (failed or self._all):
            kept = Path(self._directory) / name
            if here:
                _copy_trial(folder, kept)
                if not self._all:
                    _keep_out_of_git(kept.parent)
        shutil.rmtree(folder, ignore_errors=True)
        return kept


def _copy_trial(folder: Path, target: Path) -> None:
    """Copy a trial's folder, over an earlier one of the same name.

    Raises:
        UserError: what stands there is no trial, and so is not ours to replace.
    """
    if target.exists() and not (target / "trial.json").exists():
        raise UserError(f"{target} is in the way and holds no trial: remove it, or keep trials elsewhere")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("tmp", "rendezvous", "attempts-*"))


def _keep_out_of_git(home: Path) -> None:
    """A folder that badbatch made by itself is no part of the user's repository."""
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by badbatch: the folders of failing trials.\n*\n", encoding="utf-8")


def slug(name: str) -> str:
    """A name as part of a path: ``one-bad[workers=2,ranks=2]`` becomes ``one-bad-w2-r2``."""
    short = re.sub(r"workers=", "w", re.sub(r"ranks=", "r", re.sub(r"source=", "", name)))
    return re.sub(r"[^A-Za-z0-9_.]+", "-", short).strip("-")
