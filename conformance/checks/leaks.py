"""The check on what a loader leaves behind."""

from __future__ import annotations

from collections.abc import Iterator

from ...harness.trial.event_log import Kind, Remains
from ...harness.trial.history import History
from ...harness.trial.spec import CLOSE_WITHIN_S
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from ..judging.patience import waited_longer, waited_s
from .base import Violation, check, count

_WORDS = {
    Remains.PROCESS: "process",
    Remains.THREAD: "thread",
    Remains.SHARED_MEMORY: "shared-memory object",
    Remains.DESCRIPTOR: "descriptor",
    Remains.FILE: "temporary file",
}


@check(
    "no-leftovers",
    title="Nothing of the loader accumulates, and nothing outlives it",
    why="Workers, shared memory and file descriptors that outlive their loader fill the machine after many runs.",
    source="DESIGN of badbatch; torch.utils.data, shutdown of workers",
)
def no_leftovers(history: History, ledger: Ledger, expected: Expectation) -> Iterator[Violation]:
    """Processes, threads, shared memory, descriptors and temporary files.

    What a process keeps once is not a leak. Closing must end.
    """
    for rank in range(history.spec.most_ranks):
        begun, ended = (history.of(kind, rank=rank) for kind in (Kind.CLOSING, Kind.CLOSED))
        if len(begun) > len(ended) and waited_longer(history, begun[-1], CLOSE_WITHIN_S):
            seconds = waited_s(history, begun[-1])
            yield Violation("closing the loader ends", f"it had not ended after {seconds:.0f} s, when the trial was cut")
            return
    leaked = found = [(_WORDS[Remains(int(event["flags"]))], history.text(event)) for event in history.of(Kind.LEFTOVER)]
    if not found and history.complete:
        found = [(_OUTLIVED[str(entry["what"])], str(entry["name"])) for entry in history.ended.leftovers]
    if not found:
        return
    kinds = sorted({what for what, _ in found})
    counted = ", ".join(count(sum(what == kind for what, _ in found), kind) for kind in kinds)
    names = ", ".join(sorted({name for _, name in found})[:3])
    if leaked:
        happened = f"with each loader that was built and dropped, {counted} more: {names}"
        yield Violation("what a loader leaves behind does not accumulate", happened)
    else:
        yield Violation("nothing outlives the process that used the loader", f"{counted} remained: {names}")


_OUTLIVED = {"process": "process", "shared memory": "shared-memory object"}
