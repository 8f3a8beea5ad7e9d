"""A trial is cut as soon as its processes only wait for one another, and no clock wakes them; never one that would continue."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trials
from badbatch.harness.processes import waits
from badbatch.harness.processes.process_tree import descendants
from badbatch.harness.processes.waits import Waits
from badbatch.harness.trial.spec import Topology
from children import child

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not os.path.exists("/proc/self/syscall"), reason="system calls are read from /proc"
)

READY = "print('ready', flush=True)\n"
SLEEPS_S = 600.0
"""Beyond the deadline of :func:`proof`."""

ENDLESS = {
    "a queue that nothing is put into": f"import queue\n{READY}queue.Queue().get()",
    "a thread that waits for the thread that joins it": f"""
        import threading
        me = threading.main_thread()
        helper = threading.Thread(target=me.join)
        helper.start()
        {READY.strip()}
        helper.join()
    """,
    "two processes, each reading from the other": f"""
        import os
        down, up = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.read(down[0], 1)
        {READY.strip()}
        os.read(up[0], 1)
    """,
    "a process that waits for a child, which waits for it": f"""
        import os
        asked, _ = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(asked, 1)
        {READY.strip()}
        os.waitpid(pid, 0)
    """,
    "a stopped child": f"""
        import os, signal
        pid = os.fork()
        if pid == 0:
            signal.raise_signal(signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        {READY.strip()}
        os.waitpid(pid, 0)
    """,
    "connections of multiprocessing": f"""
        import multiprocessing, os
        mine, theirs = multiprocessing.Pipe()
        if os.fork() == 0:
            theirs.recv()
        {READY.strip()}
        mine.recv()
    """,
    "a lock of multiprocessing": f"""
        import multiprocessing, os
        lock = multiprocessing.get_context("fork").Lock()
        lock.acquire()
        if os.fork() == 0:
            lock.acquire()
        {READY.strip()}
        lock.acquire()
    """,
    "select over pipes": f"import os, select\n{READY}select.select([os.pipe()[0]], [], [])",
    "an event loop with nothing to do": f"""
        import asyncio
        async def idle():
            {READY.strip()}
            await asyncio.get_running_loop().create_future()
        asyncio.run(idle())
    """,
    "a sleep beyond the deadline": f"import time\n{READY}time.sleep({SLEEPS_S})",
    "a lock with a timeout beyond the deadline": f"import threading\n{READY}threading.Event().wait({SLEEPS_S})",
    "a poll beyond the deadline": f"import os, select\n{READY}select.select([os.pipe()[0]], [], [], {SLEEPS_S})",
}
GOES_ON = {
    "a sleep": f"import time\n{READY}time.sleep(60)",
    "a lock with a timeout": f"import threading\n{READY}threading.Event().wait(60)",
    "select with a timeout": f"import os, select\n{READY}select.select([os.pipe()[0]], [], [], 60)",
    "a queue of multiprocessing with a timeout": f"import multiprocessing\n{READY}multiprocessing.SimpleQueue()._reader.poll(60)",
    "one thread of many that sleeps": f"""
        import queue, threading, time
        for _ in range(3):
            threading.Thread(target=queue.Queue().get).start()
        threading.Thread(target=time.sleep, args=(60,)).start()
        {READY.strip()}
    """,
    "an alarm with a handler": f"""
        import os, signal
        signal.signal(signal.SIGALRM, print)
        signal.alarm(60)
        {READY.strip()}
        os.read(os.pipe()[0], 1)
    """,
    "a named pipe that another program may write to": f"""
        import os
        os.mkfifo("named")
        pipe = os.open("named", os.O_RDWR)
        {READY.strip()}
        os.read(pipe, 1)
    """,
    "a named pipe that is being opened": f"import os\nos.mkfifo('named')\n{READY}open('named')",
    "a connection over the network": f"""
        import socket
        listening = socket.create_server(("127.0.0.1", 0))
        {READY.strip()}
        listening.accept()
    """,
    "a socket with a timeout of the kernel's": f"""
        import socket, struct
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 60, 0))
        {READY.strip()}
        one.recv(1)
    """,
    "a file lock that another program may hold": f"""
        import fcntl, os
        held = open("lock", "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fork() == 0:
            fcntl.flock(open("lock"), fcntl.LOCK_EX)
        {READY.strip()}
        os.wait()
    """,
    "a busy process": f"{READY}while True: pass",
    "what it inherited": f"import os\n{READY}os.read(0, 1)",
}


@pytest.fixture
def noticed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look is believed at once."""
    monkeypatch.setattr(waits, "CONFIRMED_AFTER_S", 0.05)


def looks(program: str, folder: Path, deadline_s: float = 300.0) -> Iterator[str]:
    """The messages about a program in one look after the other, after it is ready."""
    began = time.monotonic()
    with child(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        follows = Waits(
            lambda: [process.pid, *descendants(process.pid)], folder, began, time.monotonic() + deadline_s
        )
        while True:
            yield follows.endless()
            time.sleep(0.05)


@pytest.mark.usefixtures("noticed_soon")
@pytest.mark.parametrize("name", ENDLESS)
def test_what_nothing_can_wake_is_proved(name: str, tmp_path: Path) -> None:
    """All threads wait without a clock: the message says so as soon as they all wait."""
    found = looks(ENDLESS[name], tmp_path)
    assert next(filter(None, found)).endswith("and no clock wakes any of them before the deadline")
    found.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("noticed_soon")
@pytest.mark.parametrize("name", GOES_ON)
def test_what_may_go_on_is_never_proved(name: str, tmp_path: Path) -> None:
    """A clock, a descriptor that others have, or an unknown system call: there is no message."""
    found = looks(GOES_ON[name], tmp_path)
    assert {""} == {next(found) for _ in range(12)}
    found.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("noticed_soon")
def test_a_thread_that_runs_now_and_then_is_no_proof(tmp_path: Path) -> None:
    """Two processes that answer each other without a clock are often both seen waiting; they have run in between."""
    program = f"""
        import os
        down, up = os.pipe(), os.pipe()
        child = os.fork() == 0
        reads, writes = (down[0], up[1]) if child else (up[0], down[1])
        if not child:
            {READY.strip()}
            os.write(writes, b"x")
        while os.read(reads, 1):
            os.write(writes, b"x")
    """
    found = looks(program, tmp_path)
    assert {""} == {next(found) for _ in range(30)}
    found.close()  # type: ignore[attr-defined]


def test_the_proof_takes_a_second_look(tmp_path: Path) -> None:
    """It is not believed before the same threads have waited for a while."""
    found = looks(ENDLESS["select over pipes"], tmp_path)
    assert next(found) == ""
    assert next(filter(None, found))
    found.close()  # type: ignore[attr-defined]


def test_what_this_process_does_not_see_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where system calls must not be read, nothing is proved."""

    def refused(pid: int, thread: str) -> None:
        raise PermissionError

    monkeypatch.setattr(waits, "waiting", refused)
    assert Waits(lambda: [os.getpid()], tmp_path, 0.0, 1e9).endless() == ""


@pytest.mark.timeout(120)
def test_a_loader_that_waits_for_ever_is_cut_before_its_deadline(tmp_path: Path) -> None:
    """It fails finite-epoch, with the proof in the message, long before a deadline of ten minutes."""
    asked = trials.question("fixtures.loaders.liars_iterators:prefetch_thread_dies", "one-bad", Topology(0, 1), deadline_s=600.0)
    [judged] = trials.put([asked], tmp_path).values()
    assert judged.history.ended.cut == "stalled"
    assert "no clock wakes any of them before the deadline" in judged.blamed["finite-epoch"].happened
