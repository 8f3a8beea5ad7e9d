"""Prevents core files after a deliberate crash."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def switch_off() -> None:
    """Disable core files and core handlers for this process, which is about to die."""
    import resource  # not on Windows, where there are no core files

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        # Where core_pattern names a program, the kernel starts it whatever the limit is (core(5)). It would delay the
        # dying process by seconds and store the dump elsewhere. Only this flag prevents that.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
