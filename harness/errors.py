"""The error tree: what the user can fix, what the loader under test broke, and the rest, which is ours."""

from __future__ import annotations


class BadbatchError(Exception):
    """Base of the errors that badbatch raises on purpose; the message is one line and says how to fix it."""


class UserError(BadbatchError):
    """An option, a file or a name that the user gave is wrong."""


class LoaderError(UserError):
    """The loader under test cannot be held to anything: it cannot be imported, called, iterated or read."""


class HarnessError(BadbatchError):
    """The harness itself failed; never the loader's fault."""


def one_line(error: BaseException) -> str:
    """Class and message of any error in one line; of one whose message cannot be made, the class alone."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the error is someone else's, and may do anything
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
