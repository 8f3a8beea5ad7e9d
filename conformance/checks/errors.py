"""Checks on what an error says: it names the sample, and keeps its type and its message."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...harness.articles import with_article
from ...harness.contract.job import Contract
from ...harness.faults import Effect
from ...harness.sources.base import truth
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Kind, Where
from ...harness.trial.history import Events, History
from ...harness.trial.spec import TrialSpec
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from .base import Violation, check, with_effects

_NOT_A_SAMPLE = re.compile(
    r"\b(worker|process|pid|rank|thread|batch|step|epoch|line|column|char|byte|position|offset|errno|code|signal)(s|\(s\))?"
    r"( process| number| id)?[\W_]*\d+",
    re.IGNORECASE,
)
"""Numbers in a message that are not a sample's: a worker, a process, or a line of source code in a traceback."""
_NAMES_WORKER = re.compile(r"(worker|pid|process)\W+(process |pid\(s\) )?\W*\d+", re.IGNORECASE)


def _raises(contract: Contract, spec: TrialSpec) -> str | None:
    return None if contract.on_damage == "raise" else "the loader does not promise to raise"


def _surfaced(history: History) -> Events:
    """The first error that reached each rank's consumer after a fault took effect there."""
    first = []
    for rank in range(history.spec.most_ranks):
        struck = history.of(Kind.FAULT, rank=rank)
        raised = history.of(Kind.RAISED, rank=rank)
        raised = raised[np.isin(raised["flags"], (Where.NEXT, Where.OUTSIDE, Where.ITER, Where.FACTORY))]
        if len(struck):
            after = raised[raised["time"] >= struck[0]["time"]]
            first.append(after[:1])
        elif not truth(history.spec).reads_recorded and not len(history.struck):
            first.append(raised[:1])  # no record of a process that opened the file: opens by C libraries are not recorded
    found: Events = np.concatenate(first) if first else history.events[:0]
    return found


@check(
    "error-names-sample",
    title="The error names the sample",
    why="Users search for a file name, a key or an id. An error without one leaves a search through millions of files.",
    source="torch.utils.data, ExceptionWrapper: the error of a worker carries the message that the data set raised",
    exercised=with_effects(Effect.ERROR, Effect.CRASH),
    needs=_raises,
)
def error_names_sample(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """By id, by key or by its file, or with the source's own message. For a dead worker its number is enough."""
    source_said = [str(text["message"]) for text in _source_errors(history).values() if text["message"]]
    for event in _surfaced(history):
        suspects = _suspects(history, expected, event)
        if _wordless(history, event, suspects):
            continue
        said = history.chain(event)
        names_worker = np.any(expected.lethal[suspects]) and _NAMES_WORKER.search(said)
        if not (_names(said, history.spec, suspects) or names_worker or any(message in said for message in source_said)):
            what = "the sample or the worker" if np.any(expected.lethal[suspects]) else "the sample, by file, key or id"
            yield Violation(
                f"the error names {what}",
                f"it says only: {history.text(event).strip()[:160] or 'nothing'}",
                witnesses=tuple(int(s) for s in suspects[:5]),
            )


def _wordless(history: History, event: np.void, suspects: npt.NDArray[np.int64]) -> bool:
    """Whether the source raised without any text in the process in which the error surfaced.

    An example is the plain StopIteration of a ``next()``: its traceback is complete, and it has no message that could
    be lost.
    """
    done = history.of(Kind.READ_DONE, rank=int(event["rank"]))
    raised = done[(done["flags"] == 1) & np.isin(done["sample"], suspects) & (done["time"] <= event["time"])]
    said = [history.texts.get((int(one["pid"]), int(one["aux"])), {}).get("message", "") for one in raised]
    return len(raised) > 0 and not any(said) and bool(np.all(raised["pid"] == event["pid"]))


def _suspects(history: History, expected: Expectation, event: np.void) -> npt.NDArray[np.int64]:
    """The samples that an error may be about: those whose fault took effect on its rank before it.

    On disk also all other damaged samples: opens by C libraries are not recorded.
    """
    struck = history.of(Kind.FAULT, rank=int(event["rank"]))
    found = struck["sample"][struck["time"] <= event["time"]]
    found = found[(found >= 0) & (found < len(expected.owed))]
    if not expected.truth.reads_recorded:
        found = np.concatenate([found, np.flatnonzero(expected.owed != Owed.GOOD)])
    return np.unique(found).astype(np.int64)


def _names(said: str, spec: TrialSpec, suspects: npt.NDArray[np.int64]) -> bool:
    """Whether a message names one of these samples: its id or key, or its file."""
    numbers = {number.lstrip("0") or "0" for number in re.findall(r"\d+", _NOT_A_SAMPLE.sub(" ", said))}
    if any(str(int(sample)) in numbers for sample in suspects):
        return True
    known = truth(spec)
    files = {known.path_of(int(sample)).rpartition("/")[2] for sample in suspects} - {""}
    return any(file in said or repr(file)[1:-1] in said for file in files)


def _source_errors(history: History) -> dict[int, dict[str, object]]:
    """What the source itself raised, by sample."""
    done = history.of(Kind.READ_DONE)
    found: dict[int, dict[str, object]] = {}
    for event in done[done["flags"] == 1]:
        text = history.texts.get((int(event["pid"]), int(event["aux"])))
        if text is not None:
            found.setdefault(int(event["sample"]), dict(text))
    return found


def _raises_what_it_met(contract: Contract, spec: TrialSpec) -> str | None:
    if not truth(spec).raises:
        return "on disk the loader itself raises the error: there is no record of the original one"
    return _raises(contract, spec)


@check(
    "error-kept",
    title="The error keeps its type and its message",
    why="A handler written for OSError at 0 workers never runs when a worker turns it into RuntimeError.",
    source="pytorch/pytorch issues on ExceptionWrapper.reraise: classes with other constructors arrive as RuntimeError",
    exercised=with_effects(Effect.ERROR),
    needs=_raises_what_it_met,
)
def error_kept(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """With workers as without. A StopIteration cannot leave ``next()`` as an error (PEP 479)."""
    sources = {
        sample: text for sample, text in _source_errors(history).items() if text["type"] != "builtins.StopIteration"
    }
    if not sources:
        return
    types = {str(text["type"]) for text in sources.values()}
    messages = [str(text["message"]) for text in sources.values()]
    for event in _surfaced(history):
        bases = history.texts.get((int(event["pid"]), int(event["aux"])), {}).get("bases", [])
        said = history.text(event)
        if not types & set(bases):
            yield Violation(
                f"the error is still {' or '.join(with_article(name) for name in sorted({_short(t) for t in types}))}",
                f"it arrived as {_short(history.text(event, 'type'))}",
            )
        elif not any(message.strip("'\"") in said for message in messages):
            yield Violation(
                f"the error still says {messages[0][:80]!r}",
                f"it says {said.strip()[:160]!r}",
            )


def _short(name: str) -> str:
    return name.rpartition(".")[2]


