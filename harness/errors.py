"""The error classes: what the user can fix, what the loader under test broke, and failures of badbatch itself."""

from __future__ import annotations


class BadbatchError(Exception):
    """Base class of the errors that badbatch raises on purpose.

    The message is one line and says how to fix the problem.
    """


class UserError(BadbatchError):
    """An option, a file or a name that the user gave is wrong."""


class LoaderError(UserError):
    """The loader under test cannot be tested: it cannot be imported, called, iterated or read."""


class NotCarried(BadbatchError):
    """A loader factory raises this: the format that its loader reads cannot hold what this trial is about.

    The trial is then not applicable, with this reason. In a trial in which nothing is damaged or odd it is an error like any other.
    """


class HarnessError(BadbatchError):
    """The harness itself failed; never the loader's fault."""


def one_line(error: BaseException) -> str:
    """Class and message of any error in one line; only the class if the message cannot be made."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - foreign code: making the message may raise anything
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
