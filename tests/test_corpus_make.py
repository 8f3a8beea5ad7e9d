"""The engine of corpora: the same bytes whatever the jobs, nothing left behind, nothing overwritten."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PIL")
pytest.importorskip("faker")

from badbatch.harness.corpus.base import Choice, Recipe, SampleRecord, State
from badbatch.harness.corpus.damage import disk_faults
from badbatch.harness.corpus.draws import Lottery, Shuffle
from badbatch.harness.corpus.make import make
from badbatch.harness.corpus.manifest import read_corpus, read_recipe, read_samples
from badbatch.harness.corpus.verify import verify
from badbatch.harness.corpus.workers import ordered
from badbatch.harness.errors import HarnessError, UserError
from children import child

SMALL = Recipe("imagefolder", 60, seed=5, damage=0.2, oddities=0.2, size=(64, 64))
COMMAND = [sys.executable, "-c", "from badbatch.harness.corpus.cli import corpus; corpus()"]


def digest_of(root: Path) -> str:
    """Of every path and every byte below a folder."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        found.update(f"{path.relative_to(root)} {path.lstat().st_mode}\n".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def test_the_same_bytes_with_one_job_and_with_two(tmp_path: Path) -> None:
    """The same recipe gives the same corpus, manifest included, whatever the number of processes."""
    recipe = Recipe("imagefolder", 700, seed=7, damage=0.1, oddities=0.05, size=(64, 64))
    for jobs in (1, 2):
        make(str(tmp_path / str(jobs)), recipe, jobs=jobs)
    assert digest_of(tmp_path / "1") == digest_of(tmp_path / "2")


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    """The seed decides."""
    make(str(tmp_path / "a"), SMALL, jobs=1)
    make(str(tmp_path / "b"), Recipe(**{**SMALL.to_json(), "seed": 6, "size": (64, 64)}), jobs=1)
    assert digest_of(tmp_path / "a") != digest_of(tmp_path / "b")


def test_the_manifest_counts_what_is_there(tmp_path: Path) -> None:
    """The recipe is read back, ids are 0 … n-1 in order, and the counts are those of the records."""
    made = make(str(tmp_path / "c"), SMALL, jobs=1)
    records = list(read_samples(str(tmp_path / "c")))
    assert read_recipe(str(tmp_path / "c")) == SMALL
    assert list(range(60)) == [record.id for record in records]
    assert sum(record.fault is not None for record in records) == 12
    assert sum(record.oddity is not None for record in records) == 12
    assert dict(Counter(record.state.value for record in records)) == made["counts"]["state"]
    assert all(record == SampleRecord.from_json(json.loads(json.dumps(record.to_json()))) for record in records)
    assert "pillow" in made["libraries"]


@pytest.mark.parametrize("address", ["memory://corpora/one", "file://{tmp}/one"])
def test_any_address_of_fsspec_will_do(address: str, tmp_path: Path) -> None:
    """A corpus is made, verified and read at a memory:// and at a file:// address."""
    pytest.importorskip("fsspec")
    address = address.format(tmp=tmp_path)
    made = make(address, SMALL, jobs=2)
    assert 60 == made["counts"]["samples"] == len(list(read_samples(address)))
    assert list(verify(address)) == []
    with pytest.raises(UserError, match="exists"):
        make(address, SMALL)
    make(address, SMALL, force=True)
    assert list(verify(address)) == []


def test_what_only_a_local_folder_can_hold_is_left_out_elsewhere() -> None:
    """Pipes and links are not chosen for a remote address, and are refused there by name."""
    pytest.importorskip("fsspec")
    make("memory://corpora/two", Recipe("imagefolder", 90, damage=0.5, size=(64, 64)), jobs=1)
    assert {None, "missing"} == {record.special for record in read_samples("memory://corpora/two")}
    with pytest.raises(UserError, match="needs a local folder"):
        make("memory://corpora/three", Recipe("imagefolder", 9, damage=0.5, faults=(Choice("hanging-pipe"),)))


def test_a_target_that_exists_is_refused(tmp_path: Path) -> None:
    """A folder with anything in it is refused and untouched; --force replaces a corpus and nothing else."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    for force in (False, True):
        with pytest.raises(UserError, match=r"exists|only a corpus"):
            make(str(foreign), SMALL, force=force)
    assert os.listdir(foreign) == ["thesis.txt"]
    alike = tmp_path / "alike"
    make(str(alike), SMALL, jobs=1)
    (alike / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"would remove .*thesis\.txt"):
        make(str(alike), SMALL, force=True)
    (alike / "manifest.badbatch").unlink()
    with pytest.raises(UserError, match=r"only a corpus.*has no manifest\.badbatch"):
        make(str(alike), SMALL, force=True)
    assert (alike / "thesis.txt").exists()
    shutil.rmtree(alike)

    ours = tmp_path / "ours"
    make(str(ours), SMALL, jobs=1)
    before = digest_of(ours)
    with pytest.raises(UserError, match="--force"):
        make(str(ours), SMALL)
    assert before == digest_of(ours)
    make(str(ours), Recipe("imagefolder", 4, damage=0, size=(64, 64)), force=True)
    assert read_corpus(str(ours))["counts"]["samples"] == 4
    assert sorted(os.listdir(tmp_path)) == ["foreign", "ours"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    """An empty folder is accepted."""
    make(str(tmp_path / "deep" / "er"), Recipe("imagefolder", 2, damage=0, size=(64, 64)))
    (tmp_path / "empty").mkdir()
    make(str(tmp_path / "empty"), Recipe("imagefolder", 2, damage=0, size=(64, 64)))
    assert (tmp_path / "empty" / "corpus.badbatch").exists()


def test_a_corpus_in_its_own_origin_is_refused(tmp_path: Path) -> None:
    """The target may be neither inside the copied folder nor around it."""
    make(str(tmp_path / "a"), Recipe("imagefolder", 4, damage=0, size=(64, 64)))
    for target in (tmp_path / "a" / "b", tmp_path, tmp_path / "a"):
        with pytest.raises(UserError, match="must not contain each other"):
            make(str(target), Recipe("imagefolder", 0, origin=str(tmp_path / "a")), force=True)


def wait_until(true: object, seconds: float = 60) -> None:
    """Wait for something to come true; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopping_leaves_nothing(how: signal.Signals, jobs: str, tmp_path: Path) -> None:
    """Stopped half-way, by Ctrl-C, SIGTERM or the end of its terminal, a make leaves no corpus, no other folder, and no process."""
    target = tmp_path / "half"
    options = ["make", str(target), "--samples", "5000000", "--jobs", jobs, "--size", "64x64", "-q"]
    with child([*COMMAND, *options], stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(list(tmp_path.glob(".half.making-*/*/*"))) > 50)
        if how is signal.SIGTERM:
            process.send_signal(how)
        else:
            os.killpg(process.pid, how)  # as a terminal does
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (130, "badbatch: stopped\n")
        assert os.listdir(tmp_path) == []
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


@pytest.mark.skipif(shutil.which("nohup") is None, reason="there is no nohup")
def test_the_tests_of_signals_hold_under_nohup() -> None:
    """What the tests start does not inherit that SIGHUP is ignored: the test above passes under nohup."""
    test = f"{__file__}::test_stopping_leaves_nothing"
    command = ["nohup", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"{int(signal.SIGHUP)}-1", test]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_under_nohup_the_end_of_the_terminal_is_ignored(tmp_path: Path) -> None:
    """A process that ignores SIGHUP from its start continues, and makes the whole corpus."""
    options = ["make", str(tmp_path / "whole"), "--samples", "3000", "--jobs", "2", "--size", "64x64", "-q"]
    with child(["nohup", *COMMAND, *options], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(list(tmp_path.glob(".whole.making-*/*/*"))) > 50)
        os.killpg(process.pid, signal.SIGHUP)
        assert process.wait(timeout=60) == 0
    assert os.listdir(tmp_path) == ["whole"]


def test_a_make_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """When the first process is killed outright, the working ones end by themselves."""
    options = ["make", str(tmp_path / "gone"), "--samples", "5000000", "--jobs", "2", "--size", "64x64", "-q"]
    with child([*COMMAND, *options]) as process:
        wait_until(lambda: len(list(tmp_path.glob(".gone.making-*/*/*"))) > 50)
        process.kill()
        process.wait()

        def ended() -> bool:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return True
            return False

        wait_until(ended)
    assert not (tmp_path / "gone").exists()


def test_a_full_disk_is_one_line_that_says_what_was_needed(tmp_path: Path) -> None:
    """On a disk that is too small nothing is left, and the message says how much was needed."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    script = f'mount -t tmpfs -o size=300k tmpfs "{tmp_path}" || exit 77; shift 0; "$@"; code=$?; ls -A "{tmp_path}"; exit $code'
    options = ["make", str(tmp_path / "big"), "--samples", "400", "--size", "64x64", "--damage", "0", "--jobs", "2"]
    command = ["unshare", "-rm", "sh", "-c", script, "sh", *COMMAND, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 2, 4):
        pytest.skip(f"no mount in a namespace here: {done.stderr.strip()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is too small: about" in done.stderr
    assert "MB" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def square(number: int) -> int:
    """A task; some of them take much longer."""
    return sum(1 for _ in range(200_000)) * 0 + number**2 if number % 7 == 0 else number**2


def die(number: int) -> int:
    """A task that kills its process."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fail(number: int) -> int:
    """A task that fails."""
    raise (UserError("fix me") if number == 2 else ZeroDivisionError("ours")) if number > 1 else KeyError(number)


def test_results_come_in_order_and_tasks_are_taken_lazily() -> None:
    """Over processes, results keep the order of the tasks, and few tasks are taken ahead: memory stays flat."""
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for number in range(500):
            taken += 1
            yield number

    for number, result in enumerate(ordered(square, tasks(), 2)):
        assert number**2 == result
        assert taken - number <= 32


def test_a_process_that_dies_is_no_hang() -> None:
    """When a working process is killed, the work ends with an error that says so."""
    with pytest.raises(HarnessError, match="was killed by SIGKILL"):
        list(ordered(die, range(50), 2))


def test_an_error_in_a_process_is_the_callers() -> None:
    """What a task raises arrives: the user's errors unchanged, badbatch's own with their traceback."""
    with pytest.raises(UserError, match="fix me"):
        list(ordered(fail, [2], 2))
    with pytest.raises(HarnessError, match="KeyError"):
        list(ordered(fail, [0], 2))


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_says_what_changed(jobs: int, tmp_path: Path) -> None:
    """A corpus as made is as its manifest says; each kind of change is found, and only what was changed."""
    root = tmp_path / "v"
    make(str(root), Recipe("imagefolder", 1100, damage=0.05, size=(64, 64)), jobs=2)
    assert list(verify(str(root), jobs=jobs)) == []
    plain = [r.path for r in read_samples(str(root)) if r.fault is None][:5]
    (root / plain[0]).unlink()
    with (root / plain[1]).open("ab") as file:
        file.write(b"!")
    data = bytearray((root / plain[2]).read_bytes())
    data[300] ^= 1
    (root / plain[2]).write_bytes(data)
    (root / plain[3]).unlink()
    os.mkfifo(root / plain[3])
    (root / "new.jpg").write_bytes(b"")
    (root / Path(plain[4]).parent / "new folder").mkdir()
    found = {(change.what, change.path) for change in verify(str(root), jobs=jobs)}
    assert {
        ("missing", plain[0]),
        ("changed", plain[1]),
        ("changed", plain[2]),
        ("kind", plain[3]),
        ("extra", "new.jpg"),
        ("extra", str(Path(plain[4]).parent / "new folder")),
    } == found


def test_a_glob_by_extension_finds_only_data(tmp_path: Path) -> None:
    """In a corpus of JSON lines every file with an extension of JSON contains samples; the manifests have another."""
    root = tmp_path / "lines"
    make(str(root), Recipe("jsonl", 20, damage=0, per_file=10), jobs=1)
    assert {path.parent.name for path in root.rglob("*.json*")} == {"data"}


@pytest.mark.parametrize("kind", ["jsonl", "imagefolder"])
def test_a_corpus_with_the_former_names_is_read(kind: str, tmp_path: Path) -> None:
    """A corpus that badbatch 0.1 made is read, verified, shown as changed where it was, and replaced by --force."""
    root = tmp_path / "old"
    make(str(root), Recipe(kind, 20, damage=0, per_file=10, size=(64, 64)), jobs=1)
    samples = list(read_samples(str(root)))
    as_before(root)
    assert list(read_samples(str(root))) == samples
    assert read_recipe(str(root)).samples == 20
    assert [str(change) for change in verify(str(root))] == []
    (root / "more.jsonl").write_text("{}")
    assert [str(change) for change in verify(str(root))] == ["extra: more.jsonl"]
    (root / "more.jsonl").unlink()
    make(str(root), Recipe(kind, 4, damage=0, per_file=10, size=(64, 64)), jobs=1, force=True)
    assert [str(change) for change in verify(str(root))] == []
    make(str(tmp_path / "other"), Recipe(kind, 4, damage=0, per_file=10, size=(64, 64)), jobs=1)
    as_before(tmp_path / "other")
    text = (tmp_path / "other" / "manifest.jsonl").read_text()
    (tmp_path / "other" / "manifest.jsonl").write_text(text.replace('"good"', '"damaged"', 1))
    assert [(change.what, change.path) for change in verify(str(tmp_path / "other"))] == [("manifest", "manifest.jsonl")]


def as_before(root: Path) -> None:
    """Give a corpus's own files the names that they had in badbatch 0.1."""
    for now, then in (("manifest.badbatch", "manifest.jsonl"), ("files.badbatch", "files.jsonl"), ("corpus.badbatch", "corpus.json")):
        if (root / now).exists():
            (root / now).rename(root / then)
    corpus = json.loads((root / "corpus.json").read_text())
    corpus["manifests"] = {name.replace(".badbatch", ".jsonl"): digest for name, digest in corpus["manifests"].items()}
    (root / "corpus.json").write_text(json.dumps(corpus))


def test_verify_finds_a_changed_manifest(tmp_path: Path) -> None:
    """A manifest that was edited is found by its own digest."""
    root = tmp_path / "m"
    make(str(root), Recipe("imagefolder", 10, damage=0, size=(64, 64)))
    text = (root / "manifest.badbatch").read_text()
    (root / "manifest.badbatch").write_text(text.replace('"good"', '"damaged"', 1))
    assert [(change.what, change.path) for change in verify(str(root))] == [("manifest", "manifest.badbatch")]
    (root / "manifest.badbatch").write_text(text)
    corpus = (root / "corpus.badbatch").read_text()
    (root / "corpus.badbatch").write_text(corpus.replace('"good": 10', '"good": 9'))
    assert [(change.what, change.path) for change in verify(str(root))] == [("manifest", "corpus.badbatch")]
    with pytest.raises(UserError, match="not a corpus"):
        list(verify(str(tmp_path)))


def test_what_a_killed_make_left_goes_with_the_next(tmp_path: Path) -> None:
    """The half corpus of a process that was killed is removed; that of one which still works is let be."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    for pid in (gone.pid, os.getppid()):
        (tmp_path / f".new.making-{pid}" / "class").mkdir(parents=True)
    make(str(tmp_path / "new"), SMALL, jobs=1)
    assert sorted(os.listdir(tmp_path)) == [f".new.making-{os.getppid()}", "new"]


def test_the_lottery_is_exact() -> None:
    """The requested number of units get a fault, each fault in proportion to its weight, and each variant once."""
    faults = [Choice("jpeg-cut-scan", 3), Choice("no-bytes", 1)]
    lottery = Lottery(1, 1000, 80, faults, 50, [Choice("grey")])
    found = Counter(fault.kind if fault else None for fault in (lottery[unit] for unit in range(1000)))
    assert dict(found) == {None: 870, "jpeg-cut-scan": 60, "no-bytes": 20, "grey": 50}
    shares = Counter(getattr(lottery[unit], "kept", None) for unit in range(1000))
    assert {15} == {count for share, count in shares.items() if share is not None}


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
def test_shuffles_are_permutations(n: int) -> None:
    """Every number gets its own place, and another one with another seed."""
    shuffled = [Shuffle(1, n, "test")[number] for number in range(n)]
    assert list(range(n)) == sorted(shuffled)
    assert n < 4 or shuffled != [Shuffle(2, n, "test")[number] for number in range(n)]


def test_every_disk_fault_says_what_it_fits() -> None:
    """Each disk fault names its kinds, its level and its family, and its documentation says what it is."""
    for name, cls in disk_faults().items():
        assert cls.kinds, name
        assert cls.level in ("sample", "file", "shard", "path"), name
        assert (cls.__doc__ or "").strip(), name
        assert cls.family, name
    assert {State.GOOD, State.DAMAGED} < set(State)
