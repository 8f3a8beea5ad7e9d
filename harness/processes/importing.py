"""What the zygote imports, and what an import did to its process: threads, and the versions of libraries."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LoaderError

if TYPE_CHECKING:
    from ..sources.base import Source


def preload(loader: str, source: Source) -> None:
    """Import what a source needs.

    Raises:
        LoaderError: it is not installed.
    """
    try:
        source.preload()
    except ModuleNotFoundError as error:
        raise LoaderError(
            f"{loader}: source {source.name!r} needs {error.name}, which is not installed: install it, or declare other sources"
        ) from error


def one_thread() -> None:
    """Make torch compute in one thread, as torchrun does: a pool of threads would not survive the fork."""
    sys.modules["torch"].set_num_threads(1)


def preload_torch() -> None:
    """Import the parts of torch that the trials need."""
    for name in ("torch", "torch.distributed", "torch.utils.data"):
        importlib.import_module(name)


def version_of(module: str) -> dict[str, str]:
    """The version of a module, if it is imported."""
    version = getattr(sys.modules.get(module), "__version__", None)
    return {} if version is None else {module: str(version)}


_SURVIVES_FORK = ("jemalloc_bg_thd",)  # a thread of pyarrow's allocator, which starts it again in the child


def native_threads() -> dict[int, str]:
    """The threads of this process that were not started by Python code, by number, with their names (Linux only)."""
    known = {thread.native_id for thread in threading.enumerate()}
    found: dict[int, str] = {}
    for task in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            name = (task / "comm").read_text(encoding="utf-8", errors="replace").strip()
            if int(task.name) not in known and name not in _SURVIVES_FORK:
                found[int(task.name)] = name
    return found


def own_version(module: str) -> dict[str, str]:
    """The version that the loader's own package gives itself, if it does: it may not be installed."""
    return version_of(module.partition(".")[0])
