"""The errors that reached the consumer, in words: class, message, and their causes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import History

DURING_EPOCH = (Where.NEXT, Where.ITER, Where.OUTSIDE)
_MESSAGE = 160  # letters of a message: enough for a path
_CAUSES = 3


def quoted(history: History, event: Any) -> str:
    """``KeyError: 'image' (caused by OSError: sample 5 cannot be read)``: an error and its causes, the nearest first."""
    said = _one(history.text(event, "type"), history.text(event))
    causes = [(kind, message) for kind, message in history.causes(event) if not kind.endswith("Traceback")]  # of the same error
    behind = [text for text in dict.fromkeys(_one(kind, message) for kind, message in causes) if text != said][:_CAUSES]
    return said + (f" (caused by {', caused by '.join(behind)})" if behind else "")


def _one(kind: str, message: str) -> str:
    name = kind.removeprefix("builtins.")
    last = last_line(message)[:_MESSAGE].rstrip()
    return f"{name}: {last}" if last else name


def may_pass(name: str) -> bool:
    """Whether an error of that class may not occur again when the sample is read once more: an ``OSError``."""
    found = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(found, type) and issubclass(found, OSError)


def last_line(message: str) -> str:
    """The last line of a message that has words: before it there may be the traceback of a worker."""
    lines = [line.strip() for line in message.splitlines() if any(map(str.isalnum, line))]
    return lines[-1] if lines else ""


def first_error(history: History) -> str:
    """The first error that the loader raised while it was built or iterated, and how many others there were; empty: none."""
    raised = history.of(Kind.RAISED)
    raised = raised[np.isin(raised["flags"], (Where.FACTORY, *DURING_EPOCH))]
    if not len(raised):
        return ""
    first = raised[int(np.argmin(raised["time"]))]
    more = len(raised) - 1
    return quoted(history, first) + (f", and {more} more error{'s' * (more != 1)}" if more else "")
