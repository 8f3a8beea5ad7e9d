"""Ports that a loader may bind: one for each trial with several ranks."""

from __future__ import annotations

import secrets
import socket

from ..errors import HarnessError

_FIRST, _LAST = 10_240, 32_000  # below the ports that Linux (32768) and macOS (49152) use for outgoing connections


class Ports:
    """Gives out ports that nothing listens on. Two running trials never have the same.

    The ports are not bound here, since a loader may bind them without ``SO_REUSEADDR``. The first is drawn at random,
    so that several programs like this one rarely choose the same.
    """

    def __init__(self) -> None:
        self._next = _FIRST + secrets.randbelow(_LAST - _FIRST)
        self._taken: set[int] = set()

    def take(self) -> int:
        """A port for one trial.

        Raises:
            HarnessError: all of them are in use.
        """
        for _ in range(_LAST - _FIRST):
            port, self._next = self._next, self._next + 1 if self._next + 1 < _LAST else _FIRST
            if port not in self._taken and _is_free(port):
                self._taken.add(port)
                return port
        raise HarnessError(f"no port from {_FIRST} to {_LAST} is free")

    def give_back(self, port: int) -> None:
        """Release the port after the trial has ended."""
        self._taken.discard(port)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
