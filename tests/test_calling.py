"""How the named loader is found, and how it is called."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from badbatch.harness.contract.calling import Built, Target, build, describe, resolve
from badbatch.harness.contract.job import Contract, Job, loader
from badbatch.harness.errors import LoaderError
from badbatch.harness.plan import FaultPlan
from badbatch.harness.sources.base import promised
from badbatch.harness.sources.memory import Numbers, Reader, ShardedStream
from torch.utils.data import DataLoader, DistributedSampler

_NAMES = (f"loaders_of_a_user_{number}" for number in itertools.count())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Makes an importable module of a text; gives its name."""
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)

    def make(text: str) -> str:
        name = next(_NAMES)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    yield make
    for name in set(sys.modules) - known:
        del sys.modules[name]


def job(**changes: Any) -> Job:
    """A plain job over ten samples in memory."""
    plain: dict[str, Any] = {
        "source": "map",
        "dataset": Numbers(10),
        "root": None,
        "samples": 10,
        "batch_size": 4,
        "num_workers": 0,
        "rank": 0,
        "world_size": 1,
        "shuffle": False,
        "seed": 3,
        "epoch": 0,
        "drop_last": False,
        "timeout": 1.5,
        "start_method": None,
        "max_consecutive_skips": None,
        "on_skip": lambda sample, reason: None,
    }
    return Job(**{**plain, **changes})


def refusal(call: Callable[[], Any]) -> str:
    """The one line in which a loader is refused."""
    with pytest.raises(LoaderError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["", "module", "module:", ":attr", "torch.utils.data.DataLoader"])
def test_a_name_without_both_parts_is_refused_with_an_example(name: str) -> None:
    """For a name that is not module:attribute, the error says how to write it."""
    expected = f"{name!r} names no loader: write it as pkg.module:attr, like torch.utils.data:DataLoader"
    assert expected == refusal(lambda: resolve(name))


def test_a_module_that_is_not_there_is_named() -> None:
    """The line says which module is missing, also if it is a parent of the named one."""
    expected = "there is no module 'nowhere_at_all': run from the folder that contains it, or install it"
    assert expected == refusal(lambda: resolve("nowhere_at_all:factory"))
    assert expected == refusal(lambda: resolve("nowhere_at_all.deeper:factory"))
    assert "there is no module 'json.nowhere'" in refusal(lambda: resolve("json.nowhere:factory"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("from json import nothing_like_it\n", "ImportError: cannot import name 'nothing_like_it' from 'json'"),
        ("def factory(job:\n    return []\n", "SyntaxError: '(' was never closed"),
        ("raise RuntimeError('needs a\\n GPU')\n", "RuntimeError: needs a GPU"),
        ("raise RuntimeError\n", "RuntimeError"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("def __getattr__(name):\n    raise ImportError('needs the extra')\n", "ImportError: needs the extra"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_its_error(
    module: Callable[[str], str], text: str, says: str
) -> None:
    """An error inside the module is the loader's, and is reported in one line with its class."""
    name = module(text)
    line = refusal(lambda: resolve(f"{name}:factory"))
    assert line.startswith(name)
    assert f"cannot be imported: {says}" in line


def test_an_attribute_that_is_not_there_is_reported_with_the_nearest(module: Callable[[str], str]) -> None:
    """A slip of the pen is fixed by the line itself."""
    name = module("def make_loader(job):\n    return []\n")
    assert f"{name} has no attribute 'make_lodaer'; did you mean 'make_loader'?" == refusal(
        lambda: resolve(f"{name}:make_lodaer")
    )
    assert f"{name} has no attribute 'zzz'" == refusal(lambda: resolve(f"{name}:zzz"))


def test_an_attribute_of_an_attribute_can_be_named(module: Callable[[str], str]) -> None:
    """A factory may be an attribute of a class or an object."""
    name = module("class Loaders:\n    @staticmethod\n    def plain(job):\n        return [1]\n")
    target = resolve(f"{name}:Loaders.plain")
    assert [1] == target.call(None)
    assert not target.drop_in


def _two(job: Any, root: Any) -> None: ...


def _keyword_only(job: Any, *, root: Any) -> None: ...


def _nothing() -> None: ...


def _only_keywords(**options: Any) -> None: ...


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (3, "mod:x is an int, not a callable: a factory takes a job, a class a dataset"),
        (_two, "mod:x takes job, root: a factory takes one argument, the job; a drop-in class takes `dataset` first"),
        (_keyword_only, "mod:x takes job, root: a factory takes one argument"),
        (_nothing, "mod:x takes nothing: a factory takes one argument"),
        (_only_keywords, "mod:x takes nothing: a factory takes one argument"),
    ],
)
def test_what_takes_neither_a_job_nor_a_dataset_is_refused(found: Any, says: str) -> None:
    """The line says what the object takes, and what it should."""
    assert refusal(lambda: describe("mod:x", found)).startswith(says)


class _Factory:
    """Equal by value, and so without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Factory)

    def __call__(self, job: Job) -> list[int]:
        return [job.samples]


class _Loader:
    def __init__(self, dataset: Any, batch_size: int = 1) -> None:
        self.given = (dataset, batch_size)

    def __iter__(self) -> Iterator[int]:
        return iter(())


@pytest.mark.parametrize(
    ("found", "drop_in"),
    [
        (lambda job: [], False),
        (lambda job, extra=1: [], False),
        (lambda *jobs: [], False),
        (_Factory(), False),
        (functools.partial(_two, root=1), False),
        (dict, False),  # has no signature
        (lambda dataset: [], True),
        (_Loader, True),
        (DataLoader, True),
        (functools.partial(DataLoader, pin_memory=False), True),
    ],
)
def test_a_first_parameter_called_dataset_makes_a_drop_in(found: Any, drop_in: bool) -> None:
    """All else that takes one argument is a factory."""
    assert drop_in == describe("mod:x", found).drop_in


def test_a_factory_gets_the_job() -> None:
    """What the factory returns is the loader, with its own way to set the epoch."""

    class Loader:
        def __iter__(self) -> Iterator[int]:
            return iter(())

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    told: list[Job] = []
    made = Loader()
    asked = job()

    def factory(job: Job) -> Loader:
        told.append(job)
        return made

    built = build(describe("mod:x", factory), asked)
    assert [asked] == told
    assert built.loader is made
    assert built.set_epoch is not None
    built.set_epoch(4)
    assert 4 == made.epoch


@pytest.mark.parametrize("made", [None, 3, object()])
def test_what_cannot_be_iterated_is_refused(made: Any) -> None:
    """A factory or class that makes no iterable is reported in one line, with the type of what it made."""
    kind = {"NoneType": "a NoneType", "int": "an int", "object": "an object"}[type(made).__name__]
    expected = f"mod:x returned {kind}, which cannot be iterated: return an iterable of batches"
    assert expected == refusal(lambda: build(describe("mod:x", lambda job: made), job()))
    expected = f"mod:x made {kind}, which cannot be iterated"
    assert expected == refusal(lambda: build(describe("mod:x", lambda dataset: made), job()))


def test_what_the_loader_raises_is_not_touched() -> None:
    """An error of the factory is the loader's own, and is raised unchanged."""

    def factory(job: Job) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        build(describe("mod:x", factory), job())


def called(asked: Job) -> tuple[Any, dict[str, Any], Built]:
    """With what a drop-in class is called for a job, and what is made of it."""
    calls: list[tuple[Any, dict[str, Any]]] = []

    def loader(dataset: Any, **options: Any) -> list[Any]:
        calls.append((dataset, options))
        return []

    built = build(describe("mod:x", loader), asked)
    [(dataset, options)] = calls
    return dataset, options, built


def test_a_drop_in_is_called_as_its_users_do() -> None:
    """Without workers it gets size, remainder and order, and no timeout, which torch's loader refuses then."""
    asked = job(drop_last=True)
    dataset, options, built = called(asked)
    assert dataset is asked.dataset
    assert {"batch_size": 4, "num_workers": 0, "drop_last": True, "shuffle": False} == options
    assert built.set_epoch is None


def test_a_drop_in_with_workers_gets_the_timeout_and_the_start_method() -> None:
    """The timeout always, the start method if one is set."""
    _, options, _ = called(job(num_workers=2))
    assert {"batch_size": 4, "num_workers": 2, "drop_last": False, "shuffle": False, "timeout": 1.5} == options
    _, options, _ = called(job(num_workers=2, start_method="spawn"))
    assert "spawn" == options["multiprocessing_context"]


def test_a_drop_in_gets_persistent_workers_if_its_signature_names_them() -> None:
    """The signature, or else the declaration, says whether a class honours them; a factory has to declare it."""

    class Named:
        def __init__(self, dataset: Any, batch_size: int = 1, num_workers: int = 0, persistent_workers: bool = False) -> None:
            self.persistent_workers = persistent_workers

        def __iter__(self) -> Any:
            return iter(())

    class Unnamed:
        def __init__(self, dataset: Any, **options: Any) -> None:
            self.options = options

    @loader(persistent_workers=False)
    class Declined(Named):
        pass

    named = describe("named", Named)
    assert named.contract("map").persistent_workers is True
    assert build(named, job(num_workers=2, persistent_workers=True)).loader.persistent_workers is True
    assert build(named, job(num_workers=2)).loader.persistent_workers is False
    assert describe("unnamed", Unnamed).contract("map").persistent_workers is None
    assert describe("declined", Declined).contract("map").persistent_workers is False
    assert describe("factory", lambda job: job).contract("map").persistent_workers is None
    _, options, _ = called(job(num_workers=2))
    assert "persistent_workers" not in options


def test_what_a_drop_in_promises_of_its_order_follows_from_its_signature() -> None:
    """One that takes no ``shuffle`` need not shuffle, and one that takes no ``generator`` has no order of the seed."""

    class Seeded:
        def __init__(self, dataset: Any, shuffle: bool = False, generator: Any = None) -> None:
            pass

    class Unseeded:
        def __init__(self, dataset: Any, shuffle: bool = False) -> None:
            pass

    class Open:
        def __init__(self, dataset: Any, **options: Any) -> None:
            pass

    @loader(shuffles=True, order="seeded")
    class Declared(_Loader):
        pass

    def promised(found: Any) -> tuple[bool | None, str | None]:
        contract = describe("mod:x", found).contract("map")
        return contract.shuffles, contract.order

    assert (None, None) == promised(Seeded) == promised(Open) == promised(lambda job: job)
    assert (None, "free") == promised(Unseeded)
    assert (False, "free") == promised(_Loader)
    assert (True, "seeded") == promised(Declared)


def test_the_sampler_of_a_loader_gets_the_epoch_if_the_loader_has_no_method_for_it() -> None:
    """As a training script does for torch's DataLoader with a DistributedSampler."""

    def factory(asked: Job) -> Any:
        return torch.utils.data.DataLoader(asked.dataset, sampler=DistributedSampler(asked.dataset, 2, 0))  # type: ignore[arg-type]

    built = build(describe("mod:x", factory), job(world_size=2))
    assert built.set_epoch is not None
    built.set_epoch(7)
    assert built.loader.sampler.epoch == 7
    assert build(describe("mod:x", lambda asked: [1]), job()).set_epoch is None


def test_a_shuffled_drop_in_is_shuffled_by_the_seed() -> None:
    """The order comes from a generator of the job's seed, the same each time."""
    orders = []
    for _ in range(2):
        _, options, _ = called(job(shuffle=True))
        assert options["shuffle"] is True
        orders.append(torch.randperm(10, generator=options["generator"]).tolist())
    assert orders[0] == orders[1]
    assert torch.randperm(10, generator=torch.Generator().manual_seed(3)).tolist() == orders[0]


def test_a_drop_in_of_several_ranks_gets_a_distributed_sampler() -> None:
    """Ranks share the samples by torch's sampler, which gets the epoch, and not by ``shuffle``."""
    shares = []
    for rank in range(2):
        _, options, built = called(job(world_size=2, rank=rank, shuffle=True))
        sampler = options["sampler"]
        assert isinstance(sampler, DistributedSampler)
        assert "shuffle" not in options
        assert built.set_epoch is not None
        built.set_epoch(1)
        shares.append(list(sampler))
    assert list(range(10)) == sorted(shares[0] + shares[1])
    _, options, _ = called(job(world_size=2, rank=1, shuffle=False))
    assert [1, 3, 5, 7, 9] == list(options["sampler"])


def test_a_stream_is_neither_shuffled_nor_sampled() -> None:
    """A stream that splits itself is passed to the class unchanged, on one rank or several."""
    stream = ShardedStream(10, Reader(FaultPlan()), rank=0, world_size=2)
    asked = dataclasses.replace(job(source="sharded_stream", world_size=2, shuffle=True), dataset=stream)
    _, options, built = called(asked)
    assert {"batch_size": 4, "num_workers": 0, "drop_last": False} == options
    assert built.set_epoch is None


def test_a_drop_in_gets_only_the_options_that_it_knows() -> None:
    """A class without ``num_workers`` or ``drop_last`` is called without them."""
    asked = job(num_workers=2)
    assert (asked.dataset, 4) == build(describe("mod:x", _Loader), asked).loader.given


def test_torch_s_own_loader_is_called_whole() -> None:
    """DataLoader itself, resolved by name, delivers every sample."""
    target = resolve("torch.utils.data:DataLoader")
    batches = list(build(target, job()).loader)
    assert [4, 4, 2] == [len(batch["id"]) for batch in batches]


@pytest.mark.parametrize(
    ("call", "source", "contract"),
    [
        (DataLoader, "map", Contract(sources=("map", "sharded_stream"), tail="pad", persistent_workers=True)),
        (DataLoader, "sharded_stream",
         Contract(sources=("map", "sharded_stream"), tail="exact", uneven_ranks=True, persistent_workers=True)),
        (loader(on_damage="mark")(lambda job: []), "map", Contract(on_damage="mark")),
        (loader(tail="drop", sources="map")(lambda dataset: []), "map",
         Contract(tail="drop", sources=("map",), divisible=False, shuffles=False, order="free")),
        (lambda job: [], "stream", Contract()),
    ],
)
def test_the_way_of_calling_declares_the_tail(call: Any, source: str, contract: Contract) -> None:
    """A drop-in's sampler pads, and a stream that splits itself leaves a remainder; a declaration goes first."""
    target: Target = describe("mod:x", call)
    assert contract == promised(target, source)
