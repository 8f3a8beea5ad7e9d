"""Processes that tests start: they end with their test, however that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from badbatch.harness.processes.process_tree import die_with_parent


def tied() -> Callable[[], None]:
    """For ``preexec_fn``: the process is killed when this one has ended (on Linux)."""
    parent = os.getpid()

    def tie() -> None:
        if sys.platform == "linux":
            die_with_parent(signal.SIGKILL, parent)

    return tie


@contextlib.contextmanager
def child(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process in its own session; at the end the whole session is killed.

    On Linux it is also killed if this process ends without getting that far, as when pytest-timeout ends it.
    """
    process: subprocess.Popen[Any] = subprocess.Popen(command, start_new_session=True, preexec_fn=tied(), **how)  # noqa: PLW1509
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
