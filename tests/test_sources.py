"""The sources in memory: what they contain, how they split, how reads and faults are recorded."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from badbatch.harness import identity
from badbatch.harness.contract.source_names import SOURCES
from badbatch.harness.errors import UserError
from badbatch.harness.faults.none_sample import NoneSample
from badbatch.harness.faults.null_field import NullField
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.transient import Transient
from badbatch.harness.plan import FaultPlan
from badbatch.harness.sources.base import find
from badbatch.harness.sources.in_memory import InMemory
from badbatch.harness.sources.memory import Numbers, Reader, faulty
from badbatch.harness.trial.event_log import Kind, Recorder
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset


def ids_of(batches: Any) -> list[int]:
    """The ids in all batches, in order."""
    return [int(sample) for batch in batches for sample in batch["id"].reshape(-1)]


def recorded(folder: Path, ranks: int = 1) -> History:
    """What was recorded in a folder."""
    TrialSpec("mod:attr", ".", "clean", "map", Topology(ranks=ranks), FaultPlan()).write(folder / "trial.json")
    return History.load(folder)


def dataset_of(source: str, samples: int, reader: Reader, rank: int = 0, ranks: int = 1) -> Any:
    """The data set that a source in memory offers."""
    found = find(source)
    assert isinstance(found, InMemory)
    return found.dataset(samples, reader, rank, ranks)


def test_a_sample_is_its_id_and_what_follows_from_it() -> None:
    """Each sample has its id and the row of that id; there are no others."""
    dataset = dataset_of("map", 10, Reader(FaultPlan()))
    assert 10 == len(dataset)
    for sample in range(10):
        found = dataset[sample]
        assert {"id", "x"} == set(found)
        assert sample == found["id"]
        assert identity.intact([sample], found["x"].reshape(1, -1)).all()
    for outside in (-1, 10):
        with pytest.raises(IndexError, match=f"sample {outside} of 10"):
            dataset[outside]


@given(st.integers(0, 60), st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_a_sharded_stream_is_split_over_ranks(samples: int, ranks: int) -> None:
    """The shares of the ranks have nothing in common, miss nothing, and differ by one sample at most."""
    reader = Reader(FaultPlan())
    shares = [[s["id"] for s in dataset_of("sharded_stream", samples, reader, rank, ranks)] for rank in range(ranks)]
    assert list(range(samples)) == sorted(sample for share in shares for sample in share)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_sharded_stream_is_split_over_workers_too(tmp_path: Path) -> None:
    """Two ranks of two workers each read every sample once, and each worker its own."""
    delivered = []
    for rank in range(2):
        reader = Reader(FaultPlan(), Recorder(tmp_path, rank))
        stream = dataset_of("sharded_stream", 10, reader, rank, 2)
        delivered += ids_of(DataLoader(stream, batch_size=2, num_workers=2))
    assert list(range(10)) == sorted(delivered)
    reads = recorded(tmp_path, ranks=2).of(Kind.READ)
    shares = {
        (int(r), int(w)): reads[(reads["rank"] == r) & (reads["worker"] == w)]["sample"].tolist()
        for r in (0, 1)
        for w in (0, 1)
    }
    assert {(0, 0): [0, 4, 8], (0, 1): [1, 5, 9], (1, 0): [2, 6], (1, 1): [3, 7]} == shares


def test_a_plain_stream_splits_nothing() -> None:
    """Every worker and every rank gets all samples: the loader must split them."""
    stream = dataset_of("stream", 6, Reader(FaultPlan()), 1, 2)
    assert list(range(6)) == [sample["id"] for sample in stream]
    assert sorted([*range(6)] * 2) == sorted(ids_of(DataLoader(stream, batch_size=2, num_workers=2)))


@pytest.mark.parametrize("kind", ["stream", "sharded_stream"])
def test_a_stream_continues_after_an_error(kind: str) -> None:
    """The source's iterator raises once for a struck sample, and then gives the next: what is lost is lost elsewhere."""
    iterator = iter(dataset_of(kind, 4, Reader(FaultPlan({1: Raise()})), 0, 1))
    assert 0 == next(iterator)["id"]
    with pytest.raises(OSError, match="1"):
        next(iterator)
    assert [2, 3] == [sample["id"] for sample in iterator]


def test_another_source_is_refused() -> None:
    """There is no source of another name."""
    with pytest.raises(UserError, match="there is no source 'maps'; known are map, imagefolder, jsonl"):
        find("maps")


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_is_one_module_that_needs_no_torch(name: str) -> None:
    """A source is found by its name in a module of that name, and importing it imports no torch."""
    code = f"import sys; from badbatch.harness.sources.base import find; print(find({name!r}).name, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [name, "False"]


@pytest.mark.parametrize("name", [name for name in SOURCES if isinstance(find(name), InMemory)])
def test_what_a_trial_needs_is_imported_before_it_begins(name: str, tmp_path: Path) -> None:
    """The zygote imports it once, so that no rank imports a module of badbatch again."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "import badbatch.harness.processes.offer\n"
        "from badbatch.harness.plan import FaultPlan\n"
        "from badbatch.harness.sources.base import find\n"
        "from badbatch.harness.trial.event_log import Recorder\n"
        "from badbatch.harness.trial.spec import Topology, TrialSpec\n"
        f"source, folder = find({name!r}), Path({str(tmp_path)!r})\n"
        f"spec = TrialSpec('a:b', '/', 'clean', {name!r}, Topology(), FaultPlan())\n"
        "source.preload()\nbefore = set(sys.modules)\n"
        "source.reader(spec, None)\nsource.serve(spec, 0, Recorder(folder, 0), folder)\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_every_read_is_recorded_with_its_fault(tmp_path: Path) -> None:
    """A read is recorded when it begins, when its fault takes effect, and when it ends or raises, in this order."""
    recorder = Recorder(tmp_path)
    dataset = dataset_of("map", 3, Reader(FaultPlan({1: Raise(), 2: NoneSample()}), recorder))
    assert 0 == dataset[0]["id"]
    with pytest.raises(OSError, match="1"):
        dataset[1]
    assert dataset[2] is None
    recorder.close()
    history = recorded(tmp_path)
    story = [(Kind(int(event["kind"])), int(event["sample"]), int(event["flags"])) for event in history.events]
    assert [
        (Kind.READ, 0, 0),
        (Kind.READ_DONE, 0, 0),
        (Kind.READ, 1, 0),
        (Kind.FAULT, 1, 0),
        (Kind.READ_DONE, 1, 1),
        (Kind.READ, 2, 0),
        (Kind.FAULT, 2, 0),
        (Kind.READ_DONE, 2, 0),
    ] == story
    failed = history.of(Kind.READ_DONE)[1]
    assert "builtins.OSError" == history.text(failed, "type")


def test_reads_in_workers_are_recorded_under_the_workers(tmp_path: Path) -> None:
    """Each reader records which process and which of torch's workers it is."""
    recorder = Recorder(tmp_path)
    dataset = dataset_of("map", 8, Reader(FaultPlan(), recorder))
    assert 0 == dataset[0]["id"]
    assert list(range(8)) == ids_of(DataLoader(dataset, batch_size=2, num_workers=2))
    recorder.close()
    reads = recorded(tmp_path).of(Kind.READ)
    assert {os.getpid()} == set(reads[reads["worker"] == -1]["pid"])
    for worker, samples in ((0, [0, 1, 4, 5]), (1, [2, 3, 6, 7])):
        mine = reads[reads["worker"] == worker]
        assert samples == mine["sample"].tolist()
        assert 1 == len(set(mine["pid"]) - {os.getpid()})


def attempts(dataset: Any) -> list[bool]:
    """For each of four reads of sample 1, whether it was well."""
    found = []
    for _ in range(4):
        try:
            found.append(dataset[1]["id"] == 1)
        except OSError:
            found.append(False)
    return found


def test_attempts_are_counted_over_all_processes(tmp_path: Path) -> None:
    """With a folder, a read in one process counts for the next one, also after its death."""
    dataset = dataset_of("map", 3, Reader(FaultPlan({1: Transient(failures=2)}), None, tmp_path))
    pid = os.fork()
    if pid == 0:
        try:
            dataset[1]
        finally:
            os._exit(9)
    os.waitpid(pid, 0)
    copied = pickle.loads(pickle.dumps(dataset))
    assert [False, True, True, True] == attempts(copied)
    assert [True] * 4 == attempts(dataset)
    assert "attempts-1" in os.listdir(tmp_path)


def test_attempts_are_counted_exactly_by_threads_at_once(tmp_path: Path) -> None:
    """Of eight reads at once, as many fail as the fault says."""
    dataset = dataset_of("map", 3, Reader(FaultPlan({1: Transient(failures=5)}), None, tmp_path))
    gate = threading.Barrier(8)
    failed: list[int] = []

    def work() -> None:
        gate.wait()
        try:
            dataset[1]
        except OSError:
            failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 5 == len(failed)


def test_without_a_folder_attempts_are_counted_in_each_copy() -> None:
    """A wrapped data set of a user's own writes no files: each copy of it counts for itself."""
    dataset = faulty([{"id": 0}, {"id": 1}], {1: Transient(failures=1)})
    copied = pickle.loads(pickle.dumps(dataset))
    assert [False, True, True, True] == attempts(dataset)
    assert [False, True, True, True] == attempts(copied)


class Squares(Dataset[int]):
    """A user's map-style data set with its own attribute."""

    title = "squares"

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> int:
        return index**2


class Counting(IterableDataset[int]):
    """A user's stream without a length."""

    title = "counting"

    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


class Counted(Counting):
    """The same with a length."""

    def __len__(self) -> int:
        return 5


def reads_of(iterator: Iterator[Any]) -> list[Any]:
    """What each step gives: a value, or the class of its error."""
    found: list[Any] = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except OSError as error:
            found.append(type(error))


def test_faults_of_a_map_style_data_set_go_by_index() -> None:
    """The wrapper has the data set's length, samples and attributes, but for those that the plan strikes."""
    dataset = faulty(Squares(), {2: Raise()})
    assert 5 == len(dataset)
    assert "squares" == dataset.title
    assert 16 == dataset[4]
    with pytest.raises(OSError, match="2"):
        dataset[2]
    with pytest.raises(IndexError):
        dataset[5]
    with pytest.raises(AttributeError):
        _ = dataset.colour


@pytest.mark.parametrize("plain", [[0, 1, 4, 9, 16], (0, 1, 4, 9, 16)])
def test_any_sequence_is_a_map_style_data_set(plain: Any) -> None:
    """A list will do."""
    dataset = faulty(plain, FaultPlan({2: NoneSample()}))
    assert [0, 1, None, 9, 16] == [dataset[index] for index in range(5)]


@pytest.mark.parametrize("stream", [Counting(), Counted()])
def test_faults_of_a_stream_go_by_position(stream: Any) -> None:
    """Each iterator counts for itself, and continues after the error, whether the stream has a length or not."""
    dataset = faulty(stream, {2: Raise()})
    assert issubclass(type(dataset), IterableDataset)
    for _ in range(2):
        assert [0, 1, OSError, 3, 4] == reads_of(iter(dataset))
    assert "counting" == dataset.title
    assert hasattr(stream, "__len__") == hasattr(dataset, "__len__")
    with pytest.raises(AttributeError):
        _ = dataset.colour


def test_a_length_is_handed_on() -> None:
    """A stream that has one keeps it, so that a loader's own length stays what it was."""
    assert 5 == len(faulty(Counted(), {}))
    assert 3 == len(DataLoader(faulty(Counted(), {}), batch_size=2))


def test_any_iterable_is_a_stream() -> None:
    """A generator will do."""
    assert [0, OSError, 2] == reads_of(iter(faulty(iter(range(3)), {1: Raise()})))


def test_a_wrapped_data_set_survives_copies(tmp_path: Path) -> None:
    """Pickled and copied wrappers read as the first one does."""
    for dataset in (faulty(Squares(), {2: NoneSample()}), faulty(Counted(), {2: NoneSample()})):
        for other in (pickle.loads(pickle.dumps(dataset)), copy.deepcopy(dataset)):
            assert (
                [0, 1, None] == list(other)[:3] if isinstance(other, IterableDataset) else [other[i] for i in range(3)]
            )


def test_a_loader_takes_a_wrapped_data_set() -> None:
    """torch's loader reads it in its workers like any other."""
    found = [int(value) for batch in DataLoader(faulty(Squares(), {}), batch_size=2, num_workers=2) for value in batch]
    assert [0, 1, 4, 9, 16] == found


@pytest.mark.parametrize(
    ("dataset", "plan", "says"),
    [
        (Squares(), None, "faulty() takes a plan like {5: Hang()}, not a NoneType"),
        (Squares(), [3], "faulty() takes a plan like {5: Hang()}, not a list"),
        (Squares(), {1: "hang"}, "sample 1 is planned to have 'hang', which is no fault"),
        (Squares(), {-1: Raise()}, "a fault plan maps sample ids 0, 1, 2"),
        (Squares(), {7: Raise()}, "the plan has a fault for sample 7, but the data set has only 5"),
        (Counted(), {5: Raise()}, "the plan has a fault for sample 5, but the data set has only 5"),
        (3, {}, "faulty() wraps data sets, and an int can be neither indexed nor iterated"),
    ],
)
def test_what_cannot_be_wrapped_is_reported_in_one_line(dataset: Any, plan: Any, says: str) -> None:
    """The line says what was given and what would do."""
    with pytest.raises(UserError) as caught:
        faulty(dataset, plan)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_a_fault_changes_a_sample_and_not_the_source() -> None:
    """A read with a fault returns its own sample: the next read with another plan finds the source whole."""
    numbers = Numbers(3)
    struck = faulty(numbers, {1: NullField()})
    assert struck[1]["x"] is None
    assert numbers[1]["x"] is not None
