"""Turns a process into one rank of a trial: forked from the zygote, or a fresh one (``python -m``)."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from ..instrumentation.late_imports import when_imported
from ..trial import endings
from ..trial.phases import ends_by_signal, life_of
from ..trial.spec import TrialSpec
from .group import let_loaders_make_groups
from .process_tree import die_with_parent
from .temporary_folder import temporary_folder

BROKE = 70  # EX_SOFTWARE of sysexits.h: the harness itself failed inside the trial
STACK_SIGNAL = signal.SIGRTMIN + 6 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR1
# Below the record's descriptors, which begin at 700: if it were among them and the loader closed it, stacks would be
# written into the record.
_STACKS_DESCRIPTOR = 640
_KEPT: list[Any] = []  # faulthandler keeps the descriptor, not the file object


def enter_directory(directory: str) -> None:
    """Make the user's folder the current one and importable, as other ``module:attr`` tools do."""
    os.chdir(directory)
    if sys.path and sys.path[0] in ("", "/"):
        del sys.path[0]
    sys.path.insert(0, directory)


def environment(spec: TrialSpec, rank: int, folder: Path, temporary: Path) -> dict[str, str]:
    """The variables for the trial's own temporary folders, and with several ranks those that torchrun sets."""
    own = {
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),  # torch makes this folder in TMPDIR by itself, whatever the loader does
    }
    return own if spec.topology.ranks == 1 else own | _torchrun(spec.topology.ranks, rank)


def _torchrun(world_size: int, rank: int) -> dict[str, str]:
    ranks = str(world_size)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "GROUP_RANK": "0",
        "ROLE_RANK": str(rank),
        "ROLE_NAME": "default",
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "GROUP_WORLD_SIZE": "1",
        "ROLE_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": os.environ["MASTER_PORT"],  # the trial's own, from its supervisor
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "badbatch",
    }


_DISTRIBUTED = re.compile(r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_.*")
"""Variables that say that a process is one of several."""


def become(spec: TrialSpec, rank: int, folder: Path, phases: range) -> NoReturn:
    """Run one rank in this process, and end the process.

    Args:
        phases: the numbers of the phases that run in this process.
    """
    code = BROKE
    try:
        _run(spec, rank, folder, phases)
        code = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        _leave(code)


def become_a_script(spec: TrialSpec, rank: int, folder: Path, phases: range) -> None:
    """Run one rank in this process, and let the interpreter end as that of a training script does, also after Ctrl-C."""
    try:
        _run(spec, rank, folder, phases)
    except Exception:
        traceback.print_exc()
        _leave(BROKE)


def _run(spec: TrialSpec, rank: int, folder: Path, phases: range) -> None:
    from ..contract.calling import resolve
    from ..sources.base import find as find_source
    from .offer import run_rank
    from .semaphores import name_semaphores

    spec = spec.in_phase(phases[0])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(signum, signal.SIG_DFL)
    chosen = environment(spec, rank, folder, temporary_folder(folder))
    for name in filter(_DISTRIBUTED.fullmatch, list(os.environ)):  # set if badbatch itself runs in a distributed job
        del os.environ[name]
    os.environ.update(chosen)
    if spec.topology.ranks > 1:
        let_loaders_make_groups()
    find_source(spec.source).enter(spec, rank, folder)
    tempfile.tempdir = None
    name_semaphores(folder)
    describe_process(rank, folder)
    _seed(spec.seed)
    run_rank(spec, rank, folder, resolve(spec.loader), phases)


def _leave(code: int) -> NoReturn:
    """End this process, whatever the loader has done to its standard output."""
    try:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def describe_process(rank: int, folder: Path) -> None:
    """Make this process write the stacks of all its threads on :data:`STACK_SIGNAL`, also while the interpreter lock is held."""
    import faulthandler

    from ..trial.event_log import open_high

    file = os.fdopen(open_high(folder / f"stacks-{rank}.txt", _STACKS_DESCRIPTOR), "w")
    faulthandler.register(STACK_SIGNAL, file=file, all_threads=True, chain=False)
    _KEPT.append(file)


def _seed(seed: int) -> None:
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    when_imported("torch", lambda: sys.modules["torch"].manual_seed(seed))


def redirect(folder: Path, rank: int) -> None:
    """Redirect what the loader prints to a file, which cannot fill up like a pipe; close its input."""
    output = os.open(folder / f"output-{rank}.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(nothing)


if __name__ == "__main__":
    die_with_parent(signal.SIGKILL, int(sys.argv[3]))
    _folder = Path(sys.argv[1])
    _spec = TrialSpec.read(_folder / endings.TRIAL)
    _phases = life_of(_spec.phases, int(sys.argv[4]))
    enter_directory(_spec.directory)
    if ends_by_signal(_spec.phases, _phases):
        become_a_script(_spec, int(sys.argv[2]), _folder, _phases)
    else:
        become(_spec, int(sys.argv[2]), _folder, _phases)
