"""Every fault in memory is real: it runs here, in a forked process, and its harm is observed."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import json
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from badbatch.harness.errors import UserError
from badbatch.harness.faults import DAMAGING, Effect, Fault, Read, from_json, registry
from badbatch.harness.faults.abort import Abort
from badbatch.harness.faults.errno import FAILING_CALLS, Errno
from badbatch.harness.faults.exit import Exit
from badbatch.harness.faults.frozen import Frozen
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.hang_holding_lock import HangHoldingLock
from badbatch.harness.faults.killed import Killed
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.slow import Slow
from badbatch.harness.strategies import faults, read_faults
from hypothesis import HealthCheck, given, settings

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are carried out in forked processes"),
]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the evidence is in /proc")
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy

KINDS = {
    "raise": Effect.ERROR,
    "stop-iteration": Effect.ERROR,
    "index-error": Effect.ERROR,
    "two-argument-error": Effect.ERROR,
    "keyword-only-error": Effect.ERROR,
    "unpicklable-error": Effect.ERROR,
    "errno": Effect.ERROR,
    "unpicklable-sample": Effect.UNPICKLABLE,
    "none-sample": Effect.VALUE,
    "null-field": Effect.VALUE,
    "ragged-window": Effect.VALUE,
    "nan": Effect.LEGAL,
    "empty-tensor": Effect.LEGAL,
    "hang": Effect.STALL,
    "hang-holding-lock": Effect.STALL,
    "frozen": Effect.STALL,
    "slow": Effect.SLOW,
    "segfault": Effect.CRASH,
    "abort": Effect.CRASH,
    "killed": Effect.CRASH,
    "exit": Effect.CRASH,
    "transient": Effect.TRANSIENT,
}
PATIENCE_S = 20.0  # for events that must happen; a busy machine may be slow
SILENCE_S = 0.5  # for what must not come; where it may come, it does so within hundredths of a second
SURVIVED = 77  # exit code of a child that outlived its strike


def good_sample() -> dict[str, Any]:
    return {"id": 5, "x": torch.arange(8, dtype=torch.float32) + 1}


def is_good(sample: Any) -> bool:
    good = good_sample()
    if set(sample) != set(good) or not isinstance(sample["x"], torch.Tensor):
        return False
    return bool(sample["id"] == good["id"]) and torch.equal(sample["x"], good["x"])


def read_of(value: Any, tell: Callable[[str], None] = lambda word: None) -> Read:
    return Read(sample=5, value=lambda: value, took_hold=lambda: tell("held"), attempt=lambda: 0)


class Child:
    """A forked process that does ``work`` and reports what happens to it in a pipe, one word in each line."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self.reader, writer = os.pipe()
        with warnings.catch_warnings():
            # The process that runs the tests may have threads (xdist); the child only runs one fault.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            try:
                faulthandler.disable()  # pytest's own would print every crash
                work(lambda word: void(os.write(writer, word.encode() + b"\n")))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is to hear of it
                os.write(writer, f"raised {type(error).__name__}\n".encode())
            finally:
                os._exit(SURVIVED)
        os.close(writer)
        self.status: int | None = None
        self.buffer = b""

    def word(self, within_s: float = PATIENCE_S) -> str | None:
        """The next word, or None if none arrived in time or the process has ended."""
        deadline = time.monotonic() + within_s
        while b"\n" not in self.buffer:
            if not select.select([self.reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            more = os.read(self.reader, 4096)
            if not more:
                return None
            self.buffer += more
        word, _, self.buffer = self.buffer.partition(b"\n")
        return word.decode()

    def words_until(self, last: str) -> list[str]:
        words: list[str] = []
        while not words or words[-1] != last:
            word = self.word()
            assert word is not None, f"{last!r} never came, but {words}"
            words.append(word)
        return words

    def silence(self) -> list[str]:
        """All words until nothing arrives for a while; they must be few."""
        words: list[str] = []
        while (word := self.word(SILENCE_S)) is not None:
            words.append(word)
            assert len(words) < 100, "it goes on and on"
        return words

    def alive(self) -> bool:
        return self.status is None and os.waitpid(self.pid, os.WNOHANG) == (0, 0)

    def end(self) -> int:
        """The wait status of the process, once it has closed its pipe."""
        while self.word() is not None:
            pass
        assert not self.buffer
        assert select.select([self.reader], [], [], 0)[0], "the process has not ended"
        self.status = os.waitpid(self.pid, 0)[1]
        return self.status

    def becomes(self, *states: str) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while psutil.Process(self.pid).status() not in states:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True


def void(_: object) -> None:
    return None


@contextlib.contextmanager
def child(work: Callable[[Callable[[str], None]], None]) -> Iterator[Child]:
    process = Child(work)
    try:
        yield process
    finally:
        if process.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, 0)
        os.close(process.reader)


def striking(fault: Fault) -> Callable[[Callable[[str], None]], None]:
    def work(tell: Callable[[str], None]) -> None:
        tell("returned good" if is_good(fault.strike(read_of(good_sample(), tell)) or {}) else "returned other")

    return work


def test_kinds_are_all_there() -> None:
    """Each kind that scenarios name is registered, with the effect that the expectation model relies on."""
    assert {kind: cls.effect for kind, cls in registry().items() if kind in KINDS} == KINDS


@pytest.mark.parametrize("kind", sorted(read_faults()))
def test_title_is_one_sentence(kind: str) -> None:
    """Each fault says in one sentence what happens, and in a second paragraph how, for ``badbatch explain``."""
    title, _, body = (read_faults()[kind].__doc__ or "").partition("\n\n")
    assert title.endswith(".")
    assert "\n" not in title
    assert len(title) <= 140
    assert body.strip().endswith(".")


@unhurried
@given(fault=faults())
def test_json_round_trip(fault: Fault) -> None:
    """Every fault comes back equal, with equal hash, from its JSON text."""
    again = from_json(json.loads(json.dumps(fault.to_json())))
    assert again == fault
    assert hash(again) == hash(fault)
    assert type(again) is type(fault)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"fault": "segfualt"}, "did you mean 'segfault'?"),
        ({"fault": "hang", "release_after_s": -1}, "release_after_s must be a number from 0 to 86400, or null, not -1"),
        ({"fault": "hang", "release_after_s": float("nan")}, "must be a number"),
        ({"fault": "slow", "seconds": "1"}, "seconds must be a number"),
        ({"fault": "slow", "seconds": True}, "seconds must be a number"),
        ({"fault": "slow", "second": 1}, "second"),
        ({"fault": "exit", "code": 256}, "code must be a whole number from 0 to 255, not 256"),
        ({"fault": "exit", "code": 1.0}, "code must be a whole number"),
        ({"fault": "transient", "failures": 0}, "failures must be a whole number from 1"),
        ({"fault": "errno", "name": "ESTAIL"}, "did you mean 'ESTALE'?"),
        ({"fault": "null-field", "field": None}, "field must be a text, not None"),
        ({"fault": "ragged-window", "width": 0}, "width must be a whole number from 1"),
        ({"fault": "nan", "position": -1}, "position must be a whole number from 0"),
        ({"fault": "raise", "error": "nowhere"}, "'nowhere' is no exception class"),
        ({"fault": "raise", "error": "not a name"}, "'not a name' is no exception class: a dotted name is needed"),
        ({"fault": "raise", "error": "..Error"}, "is no exception class"),
        ({"fault": "raise", "error": "builtins.int"}, "is no exception class"),
        ({"fault": "raise", "error": "builtins.UnicodeDecodeError"}, "cannot be raised with one message"),
        ({"fault": "raise", "message": "{nothing}"}, "may contain {sample}"),
        ({"fault": "raise", "message": "{"}, "may contain {sample}"),
    ],
)
def test_bad_parameters_are_refused(data: dict[str, Any], words: str) -> None:
    """A fault that cannot be is refused where it enters, in one line that says what would do."""
    with pytest.raises(UserError) as refused:
        from_json(data)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", sorted(read_faults()))
def test_takes_hold(kind: str) -> None:
    """Each fault reports its effect, then does what its effect declares, and nothing else."""
    fault = read_faults()[kind]()
    with child(striking(fault)) as process:
        assert process.word() == "held"
        if fault.effect is Effect.STALL:
            assert process.word(SILENCE_S) is None
            assert process.alive()
            return
        after = process.word()
        status = process.end()
    if fault.effect is Effect.CRASH:
        assert after is None
        assert os.waitstatus_to_exitcode(status) != SURVIVED
    else:
        said = {
            Effect.ERROR: "raised ",
            Effect.TRANSIENT: "raised ",
            Effect.SLOW: "returned good",
            Effect.UNPICKLABLE: "returned good",
        }
        assert after is not None
        assert after.startswith(said.get(fault.effect, "returned other"))
        assert os.waitstatus_to_exitcode(status) == SURVIVED


@pytest.mark.parametrize("kind", sorted(read_faults()))
def test_damages_follows_the_effect(kind: str) -> None:
    """A fault says that it damages exactly where its effect does."""
    fault = read_faults()[kind]()
    assert fault.damages == (KINDS.get(kind, fault.effect) in DAMAGING)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Segfault(), -signal.SIGSEGV),
        (Abort(), -signal.SIGABRT),
        (Killed(), -signal.SIGKILL),
        (Exit(), 1),
        (Exit(code=0), 0),
        (Exit(code=255), 255),
    ],
    ids=repr,
)
def test_dies_as_declared(fault: Fault, code: int) -> None:
    """The process really dies, by that signal or with that code, after it reported the fault's effect."""
    with child(striking(fault)) as process:
        assert process.word() == "held"
        assert process.word() is None
        assert os.waitstatus_to_exitcode(process.end()) == code


@pytest.mark.parametrize(
    ("fault", "code"), [(Segfault(), -signal.SIGSEGV), (Abort(), -signal.SIGABRT)], ids=["segfault", "abort"]
)
def test_crash_handlers_run(fault: Fault, code: int, tmp_path: Path) -> None:
    """A handler such as faulthandler's sees the real signal and prints its stack; the process still dies of it."""

    def work(tell: Callable[[str], None]) -> None:
        faulthandler.enable((tmp_path / "stack").open("w"))
        striking(fault)(tell)

    with child(work) as process:
        assert os.waitstatus_to_exitcode(process.end()) == code
    assert f"{fault.kind}.py" in (tmp_path / "stack").read_text()


@pytest.mark.parametrize("fault", [Segfault(), Abort()], ids=["segfault", "abort"])
def test_no_core_file(fault: Fault, tmp_path: Path) -> None:
    """A crash leaves no core file, though the limit that it found would have allowed one."""
    resource = pytest.importorskip("resource")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("this user may write no core files anyway")

    def work(tell: Callable[[str], None]) -> None:
        os.chdir(tmp_path)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        striking(fault)(tell)

    with child(work) as process:
        status = process.end()
    assert os.WIFSIGNALED(status)
    assert not os.WCOREDUMP(status)
    assert list(tmp_path.iterdir()) == []


def watched(fault: Fault, stacks: Path, in_thread: bool = False) -> Callable[[Callable[[str], None]], None]:
    """Run the fault, beside a thread that ticks, with a Python handler on SIGUSR1 and a stack dump, made in C, on SIGUSR2."""

    def work(tell: Callable[[str], None]) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: tell("handled"))
        faulthandler.register(signal.SIGUSR2, file=stacks.open("w"), all_threads=True)

        def tick() -> None:
            while True:
                tell("tick")
                time.sleep(0.01)

        threading.Thread(target=tick, daemon=True).start()
        if in_thread:
            threading.Thread(target=striking(fault), args=(tell,), daemon=True).start()
            while True:
                time.sleep(0.01)
        striking(fault)(tell)

    return work


def stack_within(process: Child, stacks: Path, file: str) -> bool:
    os.kill(process.pid, signal.SIGUSR2)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if file in stacks.read_text():
            return True
        time.sleep(0.01)
    return False


def test_hang_releases_the_lock(tmp_path: Path) -> None:
    """A hung read sleeps for ever inside the read, while threads and signal handlers of its process continue."""
    with child(watched(Hang(), tmp_path / "stacks")) as process:
        process.words_until("held")
        assert [process.word() for _ in range(5)] == ["tick"] * 5
        assert process.becomes(psutil.STATUS_SLEEPING)
        os.kill(process.pid, signal.SIGUSR1)
        assert set(process.words_until("handled")) <= {"tick", "handled"}
        assert [process.word() for _ in range(5)] == ["tick"] * 5
        assert stack_within(process, tmp_path / "stacks", "faults/hang.py")


@pytest.mark.parametrize("in_thread", [False, True], ids=["main-thread", "thread"])
def test_hang_holding_lock_stops_all_python(tmp_path: Path, in_thread: bool) -> None:
    """While the lock is held no thread ticks and no Python handler runs, whatever signals arrive; C handlers do."""
    with child(watched(HangHoldingLock(), tmp_path / "stacks", in_thread)) as process:
        process.words_until("held")
        assert set(process.silence()) <= {"tick"}  # those that were under way
        for _ in range(3):
            os.kill(process.pid, signal.SIGUSR1)
            assert process.word(SILENCE_S / 3) is None
        assert stack_within(process, tmp_path / "stacks", "faults/hang_holding_lock.py")
        assert process.becomes(psutil.STATUS_SLEEPING)
        assert process.silence() == []
        os.kill(process.pid, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(process.end()) == -signal.SIGTERM


@pytest.mark.parametrize("in_thread", [False, True], ids=["main-thread", "thread"])
def test_frozen_is_stopped(tmp_path: Path, in_thread: bool) -> None:
    """A frozen process is stopped as a whole, before its read returns; when it is continued the read is well."""
    with child(watched(Frozen(), tmp_path / "stacks", in_thread)) as process:
        process.words_until("held")
        assert process.becomes(psutil.STATUS_STOPPED)
        assert set(process.silence()) <= {"tick"}  # those that were under way
        assert process.becomes(psutil.STATUS_STOPPED)
        os.kill(process.pid, signal.SIGCONT)
        assert "returned good" in process.words_until("returned good")


@pytest.mark.parametrize("fault", [Hang(release_after_s=0.2), Slow(seconds=0.2)], ids=["hang", "slow"])
def test_late_is_good(fault: Fault) -> None:
    """A read that is delayed returns the good sample, no earlier than declared."""
    held: list[float] = []
    sample = fault.strike(read_of(good_sample(), lambda _: held.append(time.monotonic())))
    assert time.monotonic() - held[0] >= 0.2
    assert is_good(sample)


@linux
def test_errno_without_rights() -> None:
    """A user without rights gets the same errors as root."""
    if os.geteuid() != 0:
        pytest.skip("these tests run without rights as they are")

    def work(tell: Callable[[str], None]) -> None:
        os.setuid(65534)
        for name in FAILING_CALLS:
            try:
                Errno(name).strike(read_of(good_sample()))  # type: ignore[arg-type]
            except OSError as error:
                tell(errno.errorcode[error.errno or 0])

    with child(work) as process:
        assert [process.word() for _ in FAILING_CALLS] == list(FAILING_CALLS)


@settings(unhurried, max_examples=30)
@given(fault=faults(effects=Effect.CRASH))
def test_crashes_are_never_survived(fault: Fault) -> None:
    """Whatever its parameters, a crash ends the process."""
    with child(striking(fault)) as process:
        assert process.word() == "held"
        assert process.word() is None
        process.end()
