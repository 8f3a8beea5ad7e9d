"""A text without what differs between trials: two equal texts then say the same about different samples."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_PATH = re.compile(r"['\"]?(?:\S*/[^\s'\"]*|[^\s'\"]+\.[a-z][a-z0-9]{1,4}(?![\w.(]))['\"]?")
_NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:(?:, | and |-)\d+\b(?! more))*(?: and \d+ more)?")


def general(text: str) -> str:
    """The text with ``…`` for paths and names of files, and ``#`` for numbers, lists of numbers and addresses in memory.

    >>> general("OSError: a_05.jpg cannot be read: 53 bytes left of '/tmp/b/a_05.jpg'")
    'OSError: … cannot be read: # bytes left of …'
    >>> general("samples 5, 8-11 and 3 more at <Queue at 0x7f3a>")
    'samples # at <Queue at #>'
    """
    return _NUMBERS.sub("#", _PATH.sub("…", _ADDRESS.sub("#", text)))
