"""The exit codes of the ``badbatch`` command: the only place where they are defined."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """How a run ended, as a number for scripts."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    KEPT = 0, "all promises kept"
    BROKEN = 1, "one broken, or an entry of a known file that no longer holds"
    USAGE = 2, "a wrong option, name or file"
    INCONCLUSIVE = 3, "nothing broken, but something inconclusive"
    HARNESS = 4, "the harness itself failed"
    INTERRUPTED = 130, "interrupted (Ctrl-C, SIGTERM or SIGHUP)"


def table() -> str:
    """The codes with their meanings, one in each line, for the help and the documentation."""
    return "\n".join(f"{code.value:>3}  {code.meaning}" for code in ExitCode)
