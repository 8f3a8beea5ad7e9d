"""Makes a process cheap to fork: the zygote forks itself for each trial, and each trial for its workers.

Forking copies the table of the process's pages, and writing to a shared page copies the page. With torch imported that
is most of the cost of a short trial. So existing objects are excluded from garbage collection, which would write to
each of them; free memory is returned to the system; and the rest is moved to huge pages, one table entry in place of
512.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from collections.abc import Iterator

_HUGE = 2 << 20  # bytes; the size on x86-64, and on ARM with pages of 4 KiB
_MADV_COLLAPSE = 25  # Linux 6.1; independent of the machine's setting for huge pages
_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ \S+\s*(\S*)")


def settle() -> None:
    """Exclude all existing objects from garbage collection, and return free memory to the system."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)


def use_huge_pages() -> int:
    """Move this process's own memory to huge pages, as far as the kernel does that; return how many bytes were moved.

    It costs about as much as copying the memory once: worth it for a process that forks more than a few times.
    """
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    moved = 0
    for begin, end in _own_regions():
        for address in range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
            if libc.madvise(address, _HUGE, _MADV_COLLAPSE) == 0:  # otherwise: too empty, no huge page is free, or an old kernel
                moved += _HUGE
    return moved


def _own_regions() -> Iterator[tuple[int, int]]:
    """Start and end of the heap and of the unnamed writable regions; not of files, nor of the stack."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        match = _REGION.match(line)
        if match and match.group(3) in ("", "[heap]"):
            yield int(match.group(1), 16), int(match.group(2), 16)
