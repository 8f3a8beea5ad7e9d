"""The instrumentation of every process of a trial on disk: opens are recorded, and marked pictures affect their decoder."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for _needed in ("PIL", "faker"):
    pytest.importorskip(_needed)

from badbatch.conformance.engine.preparations import Preparations
from badbatch.conformance.scenarios.disk import find
from badbatch.harness import instrumentation
from badbatch.harness.corpus.marked import MAGIC, effect_of, marked
from badbatch.harness.instrumentation.decoder import EFFECTS, Decode
from badbatch.harness.instrumentation.membership import VARIABLE
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from PIL import Image, UnidentifiedImageError

PROLOGUE = """
import io, multiprocessing, os, pickle, sys
def read(path):
    from PIL import Image
    with Image.open(path) as picture:
        picture.load()
def listed(paths):
    for path in paths:
        try:
            open(path, "rb").close()
        except OSError:
            pass
"""


class Stage:
    """A trial's folder with its corpus, in which interpreters are started as a rank would start them."""

    def __init__(self, folder: Path, scenario: str, kind: str = "imagefolder") -> None:
        self.folder = folder / "trial"
        self.folder.mkdir()
        question = Preparations(folder / "corpora").settings(find(scenario, kind), kind, 40, 4, seed=0)
        self.root = Path(question["root"])
        self.spec = TrialSpec("mod:attr", ".", scenario, kind, Topology(), **question)
        self.spec.write(self.folder / "trial.json")
        assert self.spec.stored is not None
        self.paths = [str(self.root / path) for path, _, _ in self.spec.stored.files]

    def run(self, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run code, with the functions of the prologue, in a fresh interpreter of the trial."""
        file = self.folder / "code.py"  # a file, since processes that are spawned import it
        file.write_text(f"{PROLOGUE}\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in code.splitlines()))
        env = {**os.environ, **instrumentation.environment(self.folder, 0, self.root), **environment}
        command = [sys.executable, str(file), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)

    @property
    def history(self) -> History:
        """What was recorded."""
        return History.load(self.folder)

    def recorded(self, kind: Kind) -> list[int]:
        """The samples of a kind of event, in order."""
        return [int(sample) for sample in self.history.of(kind)["sample"]]


# --- opens ---------------------------------------------------------------------------------------------------------------


def test_opens_are_reads_and_faults(tmp_path: Path) -> None:
    """Each file that is opened to be read is recorded with its sample; that of a damaged one as a fault as well."""
    stage = Stage(tmp_path, "one-bad")
    done = stage.run("listed(sys.argv[1:])", *stage.paths[3:8])
    assert done.returncode == 0, done.stderr
    assert stage.recorded(Kind.READ) == [3, 4, 5, 6, 7]
    assert stage.recorded(Kind.READ_DONE) == [3, 4, 5, 6]  # nobody can say this of the last one
    assert stage.recorded(Kind.FAULT) == [5]


def test_every_way_to_open_is_seen(tmp_path: Path) -> None:
    """Relative paths, bytes, path objects and os.open are; writing, listing and other files are not reads."""
    stage = Stage(tmp_path, "clean")
    code = """
import pathlib
first, second, third, fourth = sys.argv[1:5]
os.chdir(os.path.dirname(first))
open(os.path.basename(first), "rb").close()
open(os.fsencode(second), "rb").close()
pathlib.Path(third).read_bytes()
os.close(os.open(fourth, os.O_RDONLY))
os.close(os.open(fourth, os.O_WRONLY))
os.listdir(sys.argv[5])
open(sys.argv[5] + "/manifest.badbatch").close()
open(os.path.join(os.path.dirname(first), "..", os.path.relpath(first, sys.argv[5])), "rb").close()
"""
    done = stage.run(code, *stage.paths[:4], str(stage.root))
    assert done.returncode == 0, done.stderr
    assert stage.recorded(Kind.READ) == [0, 1, 2, 3, 0]


def test_paths_are_compared_once_they_are_plain(tmp_path: Path) -> None:
    """A detour leads into the corpus or out of it; a doubled slash or a dot changes nothing."""
    stage = Stage(tmp_path, "clean")
    root = str(stage.root)
    inside = [path[len(root) + 1 :] for path in stage.paths]
    outside = tmp_path / inside[4]
    outside.parent.mkdir(parents=True)
    outside.write_bytes(b"x")
    into = [
        f"{tmp_path}/nowhere/../{os.path.relpath(root, tmp_path)}/{inside[0]}",
        f"{root}/./{inside[1]}",
        f"{os.path.dirname(root)}//{os.path.basename(root)}//{inside[2]}",
        f"/{root}/{inside[3]}",
    ]
    out_of = f"{root}/{os.path.relpath(outside, root)}"
    (tmp_path / "nowhere").mkdir()
    done = stage.run("for path in sys.argv[1:]: open(path, 'rb').close()", *into, out_of)
    assert done.returncode == 0, done.stderr
    assert stage.recorded(Kind.READ) == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_opens_are_seen_in_workers(tmp_path: Path, method: str) -> None:
    """In processes that are forked, and in fresh interpreters, each with its own pid."""
    stage = Stage(tmp_path, "one-bad")
    code = f"""
context = multiprocessing.get_context({method!r})
workers = [context.Process(target=listed, args=(sys.argv[1 + i : 7 : 2],)) for i in range(2)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""
    done = stage.run(code, *stage.paths[:6])
    assert done.returncode == 0, done.stderr
    reads = stage.history.of(Kind.READ)
    shares = {tuple(reads["sample"][reads["pid"] == pid].tolist()) for pid in set(reads["pid"].tolist())}
    assert shares == {(0, 2, 4), (1, 3, 5)}
    assert stage.recorded(Kind.FAULT) == [5]


def test_files_of_several_samples_are_no_reads(tmp_path: Path) -> None:
    """Who opens a file of rows cannot be seen to read one of them, so nothing is recorded."""
    pytest.importorskip("pyarrow")
    stage = Stage(tmp_path, "one-bad", "jsonl")
    assert stage.run("listed(sys.argv[1:])", *stage.paths).returncode == 0
    assert len(stage.history.events) == 0


def test_a_missing_file_is_met_by_who_asks_for_it(tmp_path: Path) -> None:
    """The fault of a missing file takes effect when it should be opened."""
    stage = Stage(tmp_path, "missing-file")
    assert stage.run("listed(sys.argv[1:])", *stage.paths[:4]).returncode == 0
    assert stage.recorded(Kind.FAULT) == []
    assert stage.run("listed(sys.argv[1:])", *stage.paths[4:6]).returncode == 0
    assert stage.recorded(Kind.FAULT) == [5]


def test_the_machines_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    """What follows badbatch's module on the path is executed too, and no module of badbatch can be imported by accident."""
    stage = Stage(tmp_path, "clean")
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; os.environ['SEEN'] = 'yes'\n")
    env = instrumentation.environment(stage.folder, 0, stage.root)
    path = f"{env['PYTHONPATH']}{os.pathsep}{own}"
    code = "print(os.environ['SEEN'], sys.modules['sitecustomize'].__file__, any('instrumentation' in entry for entry in sys.path))"
    done = stage.run(code, PYTHONPATH=path)
    assert done.stdout.split() == ["yes", str(own / "sitecustomize.py"), "False"], done.stderr


def test_an_interpreter_starts_although_the_trial_was_removed(tmp_path: Path) -> None:
    """Whatever is wrong with us, the user's process runs, and opens its files."""
    stage = Stage(tmp_path, "clean")
    (stage.folder / "trial.json").unlink()
    done = stage.run("listed(sys.argv[1:]); print('done')", *stage.paths[:1])
    assert (done.returncode, done.stdout) == (0, "done\n")
    done = stage.run("print('done')", BADBATCH_TRIAL="{")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "Traceback" in done.stderr


# --- the decoder ---------------------------------------------------------------------------------------------------------


def test_marked_files_name_the_effect_on_their_decoder() -> None:
    """The mark is read back, and nothing else looks like one."""
    assert [effect_of(marked(name, b"\xff\xd8")) for name in EFFECTS] == list(EFFECTS)
    assert effect_of(b"\xff\xd8") is None
    assert effect_of(b"") is None


@pytest.mark.parametrize("scenario", ["decoder-segfault", "decoder-abort", "decoder-hang", "decoder-memory"])
def test_outside_of_a_trial_a_marked_file_is_no_picture(tmp_path: Path, scenario: str) -> None:
    """Only the trial's processes make the format known to Pillow."""
    stage = Stage(tmp_path, scenario)
    with pytest.raises(UnidentifiedImageError):
        Image.open(stage.paths[5])


@pytest.mark.parametrize(("scenario", "number"), [("decoder-segfault", signal.SIGSEGV), ("decoder-abort", signal.SIGABRT)])
@pytest.mark.parametrize("how", ["here", "fork", "spawn"])
def test_decoding_really_crashes(tmp_path: Path, scenario: str, number: int, how: str) -> None:
    """Pillow dies of the file in whatever process decodes it; the record has the moment, and a good file does no harm."""
    stage = Stage(tmp_path, scenario)
    code = "read(sys.argv[1]); read(sys.argv[2])"
    if how != "here":
        code = f"""
worker = multiprocessing.get_context({how!r}).Process(target=read, args=(sys.argv[2],))
read(sys.argv[1])
worker.start()
worker.join()
os._exit(-worker.exitcode)
"""
    done = stage.run(code, stage.paths[4], stage.paths[5])
    assert done.returncode == (-number if how == "here" else number), done.stderr
    assert stage.recorded(Kind.FAULT) == [5]


@pytest.mark.parametrize("head", [b"", MAGIC[:1], MAGIC[:-1]])
def test_a_beginning_of_the_mark_is_no_mark(tmp_path: Path, head: bytes) -> None:
    """A file of no bytes, or of some that marked files begin with, is to Pillow what it is without the plug-in."""
    file = tmp_path / "empty.jpg"
    file.write_bytes(head)
    done = Stage(tmp_path, "decoder-abort").run("read(sys.argv[1])", str(file))
    assert done.stderr.rstrip().splitlines()[-1].startswith("PIL.UnidentifiedImageError"), done.stderr


def test_pillow_learns_the_format_though_it_was_imported_first(tmp_path: Path) -> None:
    """A process that has Pillow when it enters the trial dies of the file as well."""
    stage = Stage(tmp_path, "decoder-abort")
    code = """
from PIL import Image
from badbatch.harness import instrumentation
instrumentation.enter(*sys.argv[1:2], 0, sys.argv[2])
read(sys.argv[3])
"""
    done = stage.run(code, str(stage.folder), str(stage.root), stage.paths[5], PYTHONPATH="")
    assert done.returncode == -signal.SIGABRT, done.stderr


def test_decoding_hangs_with_the_lock_held(tmp_path: Path) -> None:
    """No other thread of the process runs any more, though the process lives."""
    stage = Stage(tmp_path, "decoder-hang")
    code = """
import select, signal, threading, time
ticks, end = os.pipe()
worker = os.fork()
if worker == 0:
    def tick():
        while True:
            os.write(end, b".")
            time.sleep(0.01)
    threading.Thread(target=tick, daemon=True).start()
    read(sys.argv[1])
    os._exit(1)
seen, deadline = 0, time.monotonic() + 30
while select.select([ticks], [], [], 1)[0] and time.monotonic() < deadline:
    seen += len(os.read(ticks, 4096))
print(seen > 0, time.monotonic() < deadline, os.waitpid(worker, os.WNOHANG))
os.kill(worker, signal.SIGKILL)
"""
    done = stage.run(code, stage.paths[5])
    assert done.stdout == "True True (0, 0)\n", done.stderr
    assert stage.recorded(Kind.FAULT) == [5]


def test_decoding_takes_all_memory_and_the_machine_lives(tmp_path: Path) -> None:
    """A MemoryError comes from a real allocation; afterwards the process has its memory and its limit back."""
    stage = Stage(tmp_path, "decoder-memory")
    code = """
import resource, psutil
limit = resource.getrlimit(resource.RLIMIT_AS)
try:
    read(sys.argv[1])
except MemoryError as error:
    print("MemoryError", psutil.Process().memory_info().rss < 500 << 20, resource.getrlimit(resource.RLIMIT_AS) == limit)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(200 << 10 < peak < 1 << 20)
"""
    done = stage.run(code, stage.paths[5])
    assert done.stdout.split() == ["MemoryError", "True", "True", "True"], done.stderr
    assert stage.recorded(Kind.FAULT) == [5]


def picture_bytes() -> bytes:
    """A small good PNG."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("decode", [Decode(), pickle.loads(pickle.dumps(Decode()))])
def test_the_jobs_decoder_decodes(decode: Any) -> None:
    """Good files become pictures, damaged ones raise what Pillow raises; also after a trip through pickle."""
    assert decode(picture_bytes()).getpixel((0, 0)) == (1, 2, 3)
    with pytest.raises(UnidentifiedImageError):
        decode(b"no picture")
    with pytest.raises(OSError, match="truncated"):
        decode(picture_bytes()[:-25])


def test_the_jobs_decoder_may_be_lazy() -> None:
    """Then a damaged picture is opened without complaint, and cannot be pickled."""
    lazy = pickle.loads(pickle.dumps(Decode(lazy=True)))
    picture = lazy(picture_bytes()[:-25])
    with pytest.raises(OSError, match="truncated"):
        pickle.dumps(picture)


def test_the_jobs_decoder_crashes_on_marked_files(tmp_path: Path) -> None:
    """It suffers what Pillow suffers, and the record has its sample."""
    stage = Stage(tmp_path, "decoder-abort")
    code = """
from badbatch.harness.instrumentation.decoder import Decode
Decode()(open(sys.argv[1], "rb").read())
"""
    assert stage.run(code, stage.paths[5]).returncode == -signal.SIGABRT
    assert stage.recorded(Kind.FAULT) == [5]


def test_environment_is_not_doubled(tmp_path: Path) -> None:
    """A process that is started by one that has the variables already has our folder once on its path."""
    before = instrumentation.environment(tmp_path, 0, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{before['PYTHONPATH']}{os.pathsep}/else")
        again = instrumentation.environment(tmp_path, 1, tmp_path)
    home = str(Path(instrumentation.__file__).parent)
    assert again["PYTHONPATH"].split(os.pathsep)[:1] == [home]
    assert again["PYTHONPATH"].split(os.pathsep).count(home) == 1
    assert json.loads(again[VARIABLE])["rank"] == 1
