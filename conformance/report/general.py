"""A text without what differs between trials: two equal texts then say the same about different samples."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_ID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b(?=[a-zA-Z0-9]*\d)(?=[a-zA-Z0-9]*[a-zA-Z])[a-zA-Z0-9]{8,}\b")
"""UUIDs, hashes and random parts of names: letters and digits together, eight or more."""
_PATH = re.compile(r"['\"]?(?:\S*/[^\s'\"]*|[^\s'\"]+\.[a-z][a-z0-9]{1,4}(?![\w.(]))['\"]?")
_NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+\b)?(?:(?:, | and |-)\d+\b(?! more))*(?: and \d+ more)?")
_LISTS = re.compile(r"(?P<one>…|#)(?:,? (?:and |or )?(?P=one))+")


def general(text: str) -> str:
    """The text with ``…`` for paths and names of files, and ``#`` for numbers, addresses in memory and ids; lists count as one.

    >>> general("OSError: a_05.jpg cannot be read: 53 bytes left of '/tmp/b/a_05.jpg'")
    'OSError: … cannot be read: # bytes left of …'
    >>> general("samples 5, 8-11 and 3 more at <Queue at 0x7f3a>")
    'samples # at <Queue at #>'
    >>> general("cannot open 'a/1.jpg', 'a/2.jpg' and 'b/3.jpg' of job 1f3c9ab2e7")
    'cannot open … of job #'
    """
    return _LISTS.sub(r"\g<one>", _NUMBERS.sub("#", _ID.sub("#", _PATH.sub("…", _ADDRESS.sub("#", text)))))
