"""Writes a history as a story: a trial in one line, without a process, for tests of what judges histories.

    >>> history_of("0-3 4-7 8-11 end").events["kind"].tolist().count(Kind.GOT)
    3

A story is a row of tokens with blanks between them. Each takes one millisecond, except that ``+2.5s`` lets time pass.

The speaker: ``w0:`` before a token says that worker 0 does it, ``r1:`` that it happens on rank 1, ``r1.w0:`` both; without it
the consumer of rank 0. Such a name as a separate token applies to all tokens up to the next one.

======================  ==============================================================================================
what the consumer does
======================  ==============================================================================================
``0-3`` ``0-3,7``       it asks, and gets a batch of these samples; ``5~`` with content that is not its own, ``5?`` marked
                        as missing, ``?`` marked and without an id, ``~`` unlike any sample, ``[]`` an empty batch; ``5%`` with a
                        field of another sample, ``5^`` without a field that others have (on disk)
``0-3,.``               the last is a picture without a name and without an id mark (on disk)
``raise``               it asks, and gets an error: ``raise:ValueError:what_it_says``; without a message that of the last
                        fault; ``raise@iter``, ``@outside``, ``@factory``, ``@close``, ``@length``, ``@report``, ``@save``,
                        ``@load`` elsewhere
``end``                 it asks, and the epoch is over
``ask``                 it asks; as the last token, or before the trial is cut: it waits
``break`` ``capped``    it leaves the epoch; it gives up
``unreadable``          it gets a batch that has no ids
``epoch``               the next epoch begins (the first does by itself)
``rebuilt``             it closes the loader and builds another one in the same process
``saved`` ``resumed``   it takes the loader's state; in a new process it builds a loader and loads that state (the story's
                        ``phases`` say so)
``len10``               len() says 10
``skipped2``            loader.skipped says 2; ``skipped:5,9`` names them
``waited``              in lock step the other ranks do not come to this step
``closing`` ``closed``  it drops the iterator, then the loader (it does by itself where the story does not say so)
``left:process:name``   each loader leaves something behind; ``kept:thread:name`` the process keeps it once
======================  ==============================================================================================

======================  ==============================================================================================
what a reader does
======================  ==============================================================================================
``read0-3``             it reads these samples
``begin5``              it begins to read a sample, and does not come back
``fault5``              it begins to read a sample, and the fault takes hold: the read raises, returns something, hangs
                        or dies, as the fault does that the plan has there; without a plan it raises OSError
``skip5`` ``skip?``     it calls on_skip; with -1, since it cannot tell which sample it was
======================  ==============================================================================================

How the trial ended, as the last word: ``stalled``, ``endless`` (stalled, with a proof), ``deadline`` (out of time), ``interrupted``,
``died:-11`` (the exit code of the rank that speaks); without it every rank ran to its end. Reads by the consumer must be written:
samples that arrive are not read automatically.

A story has the same records as a real consumer: ``test_history_dsl.py`` performs stories, and compares.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from badbatch.conformance.checks import Violation, find
from badbatch.conformance.diagnoses.diagnosis import diagnose
from badbatch.conformance.judging.accounting import account
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.ledger import Ledger
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults import Effect
from badbatch.harness.faults.raises import Raise
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.event_log import RECORD, Actor, Cap, Content, Kind, Remains, Where
from badbatch.harness.trial.history import Ended, History
from badbatch.harness.trial.phases import Batches, Phase, Save, left_early, plain, rebuilt
from badbatch.harness.trial.spec import Topology, TrialSpec

_TICK = 1_000_000  # nanoseconds a token
_LACKING = 32  # only in stories: the sample arrived without one of its fields
_CONTENT = {
    "": Content.WHOLE,
    "~": Content.WRONG,
    "?": Content.MARKED,
    "%": Content.WRONG | Content.MIXED,
    "^": Content.WHOLE | _LACKING,
    ".": Content.UNCHECKED,
}
_RAISED_BY = {"two-argument-error": "TwoArgumentError", "stop-iteration": "StopIteration"}
_SPEAKER = re.compile(r"(?:r(\d+))?\.?(?:w(\d+))?:(?=.|$)")
_WHERE = {"iter": Where.ITER, "outside": Where.OUTSIDE, "factory": Where.FACTORY, "close": Where.CLOSE, "length": Where.LENGTH,
          "report": Where.REPORT, "save": Where.SAVE, "load": Where.LOAD}
_NO_ERRORS = ("str", "leftover")  # texts of events that are not exceptions
_CUTS = {"stalled": "stalled", "endless": "stalled", "deadline": "out of time", "interrupted": "interrupted"}
_CONSUMER_PID, _WORKER_PID, _PIDS_A_RANK, _HELPER_PID = 100, 1, 10, 900

RESUMED = (Phase(until=Batches(1), then=Save()), Phase(load=0, epochs=2))
"""Phases of a story with one ``saved`` and one ``resumed``, and a later epoch."""
RAISES = Contract(on_damage="raise", after_error="continue", tail="pad")
STOPS = Contract(on_damage="raise", after_error="stop", tail="pad")
SKIPS = Contract(on_damage="skip", batches="short", tail="pad")
REFILLS = Contract(on_damage="skip", batches="full", tail="pad")
SUBSTITUTES = Contract(on_damage="substitute", tail="pad")
MARKS = Contract(on_damage="mark", tail="pad")


def history_of(
    story: str,
    *,
    samples: int = 12,
    batch: int = 4,
    workers: int = 0,
    ranks: int = 1,
    plan: dict[int, Any] | None = None,
    contract: Contract = RAISES,
    output: str = "",
    helpers: int = 0,
    **settings: Any,
) -> History:
    """The history that a story tells.

    Args:
        plan: the faults; samples of ``fault…`` that it lacks raise OSError.
        output: what the trial printed.
        helpers: how many processes of the loader still lived when the trial was cut.
        settings: further fields of the trial's spec, and ``stacks``: those of its processes, when it was cut; ``set_epoch``: the
            loader has that method.

    Raises:
        ValueError: a token that means nothing.
    """
    tokens = story.split()
    stacks, told_epochs = settings.pop("stacks", ""), settings.pop("set_epoch", False)
    faults = dict(plan or {})
    for match in re.finditer(r"\bfault(\d+)", story):
        faults.setdefault(int(match.group(1)), Raise())
    epochs, left = settings.pop("epochs", 1 + tokens.count("epoch")), settings.pop("break_after", None)
    if "rebuilt" in tokens:
        settings["phases"] = rebuilt(1 + tokens.count("rebuilt"), None if left is None else Batches(left))
    settings.setdefault("phases", plain(epochs) if left is None else left_early(left, epochs))
    spec = TrialSpec(
        loader="stories:teller",
        directory="/",
        scenario=settings.pop("scenario", "clean" if not faults else "one-bad"),
        source=settings.pop("source", "map"),
        topology=settings.pop("topology", Topology(workers, ranks)),
        plan=FaultPlan(faults),
        contract=contract,
        samples=samples,
        batch_size=batch,
        **settings,
    )
    return dataclasses.replace(_Teller(spec, output, helpers, told_epochs).tell(tokens), stacks=stacks)


def ledger_of(history: History) -> Ledger:
    """The ledger of a history under its own contract."""
    return account(history, expect(history.spec))


def broken(check: str, history: History) -> list[Violation]:
    """The violations that a check finds."""
    expected = expect(history.spec)
    return find(check)(history, account(history, expected), expected)


def diagnosed(check: str, history: History) -> str | None:
    """The id of the diagnosis for a failing check."""
    expected = expect(history.spec)
    found = diagnose(check, history, account(history, expected), expected)
    return None if found is None else found.id


class _Stage(enum.IntEnum):
    """How far the consumer of a rank is: it goes from each of these to the next, and from BETWEEN also to a new EPOCH."""

    BUILT = 0
    EPOCH = 1
    REPORTING = 2  # the epoch is over, and loader.skipped is read
    DROPPING = 3  # the iterator
    BETWEEN = 4
    CLOSING = 5  # the loader
    CLOSED = 6


class _Teller:
    def __init__(self, spec: TrialSpec, output: str, helpers: int, set_epoch: bool) -> None:
        self._spec = spec
        self._set_epoch = set_epoch
        self._output = output
        self._evidence = tuple({"pid": _HELPER_PID + number, "name": "helper", "state": "sleeping"} for number in range(helpers))
        self._now = 0
        self._records: list[tuple[int, ...]] = []
        self._texts: dict[tuple[int, int], dict[str, Any]] = {}
        self._rank, self._worker = 0, -1
        ranks = spec.most_ranks
        self._epochs = [-1] * ranks
        self._phases = [0] * ranks
        self._lives = [0] * ranks
        self._steps = [0] * ranks
        self._asked = [False] * ranks
        self._stages = [_Stage.BUILT] * ranks
        self._never_built = [False] * ranks
        self._codes: list[int | None] = [0] * ranks
        self._died: set[int] = set()
        self._cut: str | None = None
        self._why = ""
        self._last_message = "a read failed"

    def tell(self, tokens: Sequence[str]) -> History:
        for self._rank in range(self._spec.topology.ranks):
            self._write(Kind.BUILDING, epoch=-1)
            self._never_built[self._rank] = any("raise@factory" in token for token in tokens)
            if not self._never_built[self._rank]:
                self._write(Kind.BUILT, epoch=-1)
        standing = (0, -1)
        for token in tokens:
            self._now += _TICK
            self._rank, self._worker = standing
            match = _SPEAKER.match(token)
            if match and match.group():
                self._rank = int(match.group(1) or (standing[0] if match.group(2) else 0))
                self._worker = -1 if match.group(2) is None else int(match.group(2))
                token = token[match.end() :]
                if not token:
                    standing = (self._rank, self._worker)
                    continue
            if not self._one(token):
                raise ValueError(f"{token!r} means nothing in a story")
        self._finish()
        records = np.array([tuple(record) for record in self._records], RECORD)
        order = np.argsort(records["rank"], kind="stable")
        cut_at = self._now if self._cut else None
        ended = Ended(
            cut=self._cut,
            seconds=self._now / 1e9,
            ranks=tuple(self._codes),
            evidence=self._evidence,
            cut_at=cut_at,
            why=self._why,
        )
        return History(self._spec, records[order], self._texts, ended, output=self._output)

    def _finish(self) -> None:
        for self._rank in range(self._spec.topology.ranks):
            self._worker = -1
            if self._cut is not None or self._rank in self._died:
                continue
            if not self._never_built[self._rank]:
                self._go_on_to(_Stage.CLOSED)
            self._write(Kind.FINISHED, epoch=-1)

    @property
    def _pid(self) -> int:
        first = _CONSUMER_PID + _PIDS_A_RANK * (self._rank + self._lives[self._rank] * self._spec.most_ranks)
        return first if self._worker < 0 else first + _WORKER_PID + self._worker

    def _write(self, kind: Kind, sample: int = -1, aux: int = 0, flags: int = 0, epoch: int | None = None) -> None:
        number = self._epochs[self._rank] if epoch is None else epoch
        phase, actor = self._phases[self._rank], Actor.RANK if self._worker < 0 else Actor.WORKER
        self._records.append((self._now, sample, aux, self._pid, self._worker, phase, number, kind, flags, self._rank, actor))

    def _say(self, type_name: str, message: str) -> int:
        cls = getattr(builtins, type_name, None)
        known = isinstance(cls, type) and issubclass(cls, BaseException)
        own = f"builtins.{type_name}" if known else f"stories.{type_name}"
        mro = cls.__mro__ if known else Exception.__mro__  # type: ignore[union-attr]
        bases = [f"builtins.{base.__name__}" for base in mro if base is not object]
        number = len(self._texts) + 1
        text: dict[str, Any] = {"type": own, "bases": bases if known else [own, *bases], "message": message}
        if type_name in _NO_ERRORS:
            text = {"type": type_name, "message": message}
        self._texts[self._pid, number] = text
        return number

    def _one(self, token: str) -> bool:
        if match := re.fullmatch(r"\+([\d.]+)s", token):
            self._now += int(float(match.group(1)) * 1e9)
            return True
        if self._worker < 0 and self._consumes(token):
            return True
        return self._reads(token) or self._ends(token)

    def _build_again(self) -> None:
        self._phases[self._rank] += 1
        self._epochs[self._rank] = self._spec.phases[self._phases[self._rank]].first_epoch - 1
        self._stages[self._rank] = _Stage.BUILT
        self._steps[self._rank] = 0
        self._write(Kind.BUILDING, epoch=-1)
        self._write(Kind.BUILT, epoch=-1)

    def _begin_epoch(self) -> None:
        if self._stages[self._rank] is not _Stage.BUILT:
            self._go_on_to(_Stage.BETWEEN)
        self._epochs[self._rank] += 1
        phases, phase = self._spec.phases, self._phases[self._rank]
        if self._epochs[self._rank] > phases[phase].last_epoch and phase + 1 < len(phases):
            self._phases[self._rank] += 1
            self._epochs[self._rank] = phases[phase + 1].first_epoch
        self._steps[self._rank] = 0
        self._stages[self._rank] = _Stage.EPOCH
        self._write(Kind.EPOCH, flags=self._set_epoch)

    def _go_on_to(self, stage: _Stage) -> None:
        """Record what a consumer does on its way to a stage, unless it has been there."""
        if self._stages[self._rank] is _Stage.BUILT:
            self._begin_epoch()
        for reached in range(self._stages[self._rank] + 1, stage + 1):
            if reached == _Stage.REPORTING:
                self._write(Kind.EPOCH_DONE)
            elif reached == _Stage.DROPPING:
                self._write(Kind.CLOSING)
            elif reached == _Stage.BETWEEN:
                self._write(Kind.CLOSED)
            elif reached == _Stage.CLOSING:
                self._write(Kind.CLOSING, flags=1, epoch=-1)
            elif reached == _Stage.CLOSED:
                self._write(Kind.CLOSED, flags=1, epoch=-1)
        self._stages[self._rank] = max(stage, self._stages[self._rank])

    def _ask(self) -> None:
        if self._stages[self._rank] is not _Stage.EPOCH:
            self._begin_epoch()
        if not self._asked[self._rank]:
            self._write(Kind.ASK, aux=self._steps[self._rank])
        self._asked[self._rank] = True

    def _answer(self, kind: Kind, sample: int = -1, aux: int | None = None, flags: int = 0) -> None:
        self._ask()
        step = self._steps[self._rank]
        self._write(kind, sample, step if aux is None else aux, flags)
        self._asked[self._rank] = False
        self._steps[self._rank] += 1

    def _consumes(self, token: str) -> bool:
        step = self._steps[self._rank]
        if token == "ask":
            self._ask()
        elif token == "[]" or re.fullmatch(r"[\d?~%^.,-]+", token):
            self._batch([] if token == "[]" else list(_members(token)))
        elif token == "unreadable":
            self._answer(Kind.GOT)
            self._write(Kind.UNREADABLE, step, self._say("str", "no sample ids found in it"))
        elif match := re.fullmatch(r"raise(?:@(\w+))?(?::(\w+))?(?::(\S+))?", token):
            self._raise(*match.groups())
        elif token == "end":
            self._answer(Kind.END)
        elif token == "break":
            self._write(Kind.BROKE, aux=step - 1)
        elif token in ("capped", "capped:errors"):
            self._write(Kind.CAPPED, aux=step, flags=Cap.ERRORS if "errors" in token else Cap.CALLS)
        elif token == "epoch":
            self._begin_epoch()
        elif match := re.fullmatch(r"len(\d+)", token):
            self._length(int(match.group(1)))
        elif match := re.fullmatch(r"skipped(\d+)", token):
            self._go_on_to(_Stage.REPORTING)
            self._write(Kind.REPORTED, aux=int(match.group(1)), flags=1)
        elif match := re.fullmatch(r"skipped:(\S+)", token):
            self._go_on_to(_Stage.REPORTING)
            ids = [sample for sample, _ in _members(match.group(1))]
            self._write(Kind.REPORTED, aux=len(ids), flags=1)
            for sample in ids:
                self._write(Kind.REPORTED, sample, aux=1)
        elif token == "waited":
            self._write(Kind.WAITED, self._say("RuntimeError", "timed out"), aux=step - 1)
        else:
            return self._closes(token) or self._changes_phase(token)
        return True

    def _changes_phase(self, token: str) -> bool:
        if token == "rebuilt":
            self._go_on_to(_Stage.CLOSED)
            self._build_again()
        elif token == "saved":
            self._write(Kind.BROKE, aux=self._steps[self._rank] - 1)
            self._write(Kind.SAVED, 100, aux=self._steps[self._rank])
        elif token == "resumed":
            self._go_on_to(_Stage.CLOSED)
            self._write(Kind.FINISHED, epoch=-1)
            self._lives[self._rank] += 1
            self._build_again()
            self._write(Kind.LOADED, self._spec.phases[self._phases[self._rank]].load or 0, epoch=-1)
        else:
            return False
        return True

    def _length(self, length: int) -> None:
        after = self._stages[self._rank] is not _Stage.BUILT
        if after:
            self._go_on_to(_Stage.BETWEEN)
        self._write(Kind.LENGTH, length, flags=int(after), epoch=-1)

    def _closes(self, token: str) -> bool:
        if token in ("closing", "closed"):
            self._go_on_to(_Stage.DROPPING if token == "closing" else _Stage.CLOSED)
        elif match := re.fullmatch(r"(left|kept):(\w+):(\S+)", token):
            self._go_on_to(_Stage.CLOSED)
            kind, what = Kind.LEFTOVER if match.group(1) == "left" else Kind.KEPT, Remains[match.group(2).upper()]
            self._write(kind, flags=what, aux=self._say("leftover", match.group(3).replace("_", " ")), epoch=-1)
        else:
            return False
        return True

    def _batch(self, members: list[tuple[int, int]]) -> None:
        step = self._steps[self._rank]
        self._answer(Kind.GOT, len(members))
        for sample, content in members:
            self._write(Kind.ARRIVED, sample, step, content & ~_LACKING)
            if self._spec.stored is not None:
                self._write(Kind.FIELDS, sample, 0b01 if content & _LACKING else 0b11)

    def _raise(self, where: str | None, type_name: str | None, message: str | None) -> None:
        said = self._last_message if message is None else message.replace("_", " ")
        number = self._say(type_name or "OSError", said)
        if where is None:
            self._answer(Kind.RAISED, self._steps[self._rank], number, Where.NEXT)
            return
        if where == "iter":
            self._begin_epoch()
        elif where == "report":
            self._go_on_to(_Stage.REPORTING)
        elif where == "close":
            self._go_on_to(_Stage.CLOSING)
        elif where == "length" and self._stages[self._rank] is not _Stage.BUILT:
            self._go_on_to(_Stage.BETWEEN)
        last = max(0, self._steps[self._rank] - 1)  # the call of next() that was answered last
        self._write(Kind.RAISED, last, number, _WHERE[where], epoch=max(0, self._epochs[self._rank]))

    def _reads(self, token: str) -> bool:
        match = re.fullmatch(r"(read|begin|fault|skip)([\d,?-]+)", token)
        if match is None:
            return False
        for sample, _ in _members(match.group(2)):
            if match.group(1) == "skip":
                self._write(Kind.SKIPPED, sample, self._say("str", "it cannot be read"), epoch=-1)
                continue
            self._write(Kind.READ, sample, epoch=-1)
            if match.group(1) == "read":
                self._write(Kind.READ_DONE, sample, epoch=-1)
            elif match.group(1) == "fault":
                self._strike(sample)
        return True

    def _strike(self, sample: int) -> None:
        self._write(Kind.FAULT, sample, epoch=-1)
        effect = self._spec.plan[sample].effect
        if effect in (Effect.ERROR, Effect.TRANSIENT):
            name = _RAISED_BY.get(self._spec.plan[sample].kind, "OSError")
            self._last_message = "" if name == "StopIteration" else f"sample {sample} cannot be read"
            self._write(Kind.READ_DONE, sample, self._say(name, self._last_message), flags=1, epoch=-1)
        elif effect not in (Effect.STALL, Effect.CRASH):
            self._write(Kind.READ_DONE, sample, epoch=-1)

    def _ends(self, token: str) -> bool:
        if token in _CUTS:
            self._cut = _CUTS[token]
            self._why = "all 3 processes wait for one another" if token == "endless" else ""
            self._codes = [None] * len(self._codes)  # those that still ran when it was cut
        elif match := re.fullmatch(r"died:(-?\d+)", token):
            self._codes[self._rank] = int(match.group(1))
            self._died.add(self._rank)
        else:
            return False
        return True


def _members(text: str) -> Iterator[tuple[int, int]]:
    """``0-3,5~,6?,?`` as (id, content) pairs."""
    for part in text.split(","):
        match = re.fullmatch(r"(?:(\d+)(?:-(\d+))?)?([~?%^.]?)", part)
        if match is None or not part:
            raise ValueError(f"{part!r} is no sample in a story")
        content = _CONTENT[match.group(3)]
        first = -1 if match.group(1) is None else int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        for sample in range(first, last + 1):
            yield sample, content
