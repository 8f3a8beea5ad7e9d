"""Which samples are in a batch of whatever form, and is each what was written?"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from badbatch.harness import identity
from badbatch.harness.faults import Read
from badbatch.harness.faults.empty_tensor import EmptyTensor
from badbatch.harness.faults.nan import Nan
from badbatch.harness.faults.null_field import NullField
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.batch import BatchReader, UnreadableBatch
from badbatch.harness.trial.event_log import Content
from hypothesis import given, settings
from hypothesis import strategies as st

IDS = st.lists(st.integers(0, 2**53), min_size=1, max_size=12, unique=True)
WHOLE, WRONG, UNCHECKED, MARKED = (
    int(flag) for flag in (Content.WHOLE, Content.WRONG, Content.UNCHECKED, Content.MARKED)
)


def x(ids: Any) -> torch.Tensor:
    """The rows of these samples, as they were written."""
    return torch.from_numpy(identity.rows(ids))


def read(batch: Any, plan: FaultPlan | None = None, **options: Any) -> list[tuple[int, int]]:
    """Id and flag of each sample in a batch."""
    ids, flags = BatchReader(plan or FaultPlan(), **options).read(batch)
    assert ("int64", "uint8") == (str(ids.dtype), str(flags.dtype))
    assert len(ids) == len(flags)
    return list(zip(ids.tolist(), flags.tolist(), strict=True))


@dataclass
class Attributes:
    """A batch as an object of a user's own."""

    ids: Any
    x: Any


@dataclass
class OtherAttributes:
    """One that keeps keys only."""

    __key__: Any


Named = namedtuple("Named", ["x", "label", "id"])
Unnamed = namedtuple("Unnamed", ["numbers", "samples"])
THREE = [5, 0, 39]
FORMS: dict[str, Callable[[], Any]] = {
    "mapping, tensor": lambda: {"id": torch.tensor(THREE), "x": x(THREE)},
    "mapping, array": lambda: {"id": np.array(THREE), "x": x(THREE).numpy()},
    "mapping, list": lambda: {"id": THREE, "x": x(THREE).tolist()},
    "mapping, list of tensors": lambda: {"id": [torch.tensor(i) for i in THREE], "x": list(x(THREE))},
    "mapping, small integers": lambda: {"id": torch.tensor(THREE, dtype=torch.uint8), "x": x(THREE)},
    "mapping, column": lambda: {"id": torch.tensor(THREE).reshape(-1, 1), "x": x(THREE)},
    "mapping, ids": lambda: {"x": x(THREE), "ids": torch.tensor(THREE)},
    "mapping, index": lambda: {"x": x(THREE), "index": torch.tensor(THREE)},
    "mapping, __key__": lambda: {"__key__": [f"{i:08d}" for i in THREE], "x": x(THREE)},
    "mapping, path": lambda: {"path": [f"train/class_1/{i}.png" for i in THREE], "x": x(THREE)},
    "mapping, paths": lambda: {"path": [Path("train") / f"{i}.png" for i in THREE], "x": x(THREE)},
    "attributes": lambda: Attributes(torch.tensor(THREE), x(THREE)),
    "named tuple": lambda: Named(x(THREE), torch.tensor([1, 1, 1]), torch.tensor(THREE)),
    "tuple with one mapping": lambda: (torch.zeros(3), {"id": torch.tensor(THREE), "x": x(THREE)}, "extra"),
    "tuple of one mapping": lambda: ({"id": torch.tensor(THREE), "x": x(THREE)},),
    "tuple of one mapping, keys": lambda: ({"__key__": [f"{i}" for i in THREE], "x": x(THREE)},),
    "tuple with one integer tensor": lambda: (x(THREE), torch.tensor(THREE)),
    "the other way round": lambda: [torch.tensor(THREE), x(THREE)],
    "tuple with names": lambda: Unnamed(x(THREE), [f"sample-{i}" for i in THREE]),
    "tuple with an integer tensor and names": lambda: (x(THREE), torch.tensor(THREE), ["class 1"] * 3),
    "list of samples": lambda: [{"id": i, "x": x([i])[0]} for i in THREE],
    "list of samples, tensors": lambda: tuple({"id": torch.tensor(i), "x": x([i])[0]} for i in THREE),
    "list of samples, keys": lambda: [{"__key__": f"shard-2/{i}", "x": x([i])[0]} for i in THREE],
}


@pytest.mark.parametrize("form", FORMS)
def test_ids_and_content_are_found_in_every_form(form: str) -> None:
    """Wherever the contract allows the ids to be, they are found, and the samples are known to be whole."""
    assert [(i, WHOLE) for i in THREE] == read(FORMS[form]())


@pytest.mark.parametrize(
    ("batch", "ids"),
    [
        (torch.tensor(THREE), THREE),
        (np.array(THREE, np.int32), THREE),
        (THREE, THREE),
        ((torch.tensor(5), torch.tensor(7)), [5, 7]),
        ((torch.tensor(THREE), torch.zeros(3, 4, 4, 3)), THREE),
        (["a/5.png", "a/7.png"], [5, 7]),
        (["a/5.png"], [5]),
        ("a/5.png", [5]),
        ({"id": 5}, [5]),
        (OtherAttributes(["00000005", "00000007"]), [5, 7]),
        ({"id": torch.tensor(THREE)}, THREE),
        ({"id": torch.tensor(THREE), "picture": torch.zeros(3, 4, 4)}, THREE),
    ],
)
def test_ids_without_content_are_unchecked(batch: Any, ids: list[int]) -> None:
    """If the batch has only ids, nothing is reported about the content."""
    assert [(i, UNCHECKED) for i in ids] == read(batch)


@pytest.mark.parametrize(
    "batch", [[], (), {"id": []}, {"id": torch.tensor([], dtype=torch.int64), "x": torch.zeros(0, 8)}]
)
def test_an_empty_batch_contains_nothing(batch: Any) -> None:
    """An empty batch is a batch: of no samples."""
    assert [] == read(batch)


def test_the_first_of_several_keys_counts() -> None:
    """If a batch has both ids and paths, the ids are used; a key that contains none is skipped."""
    assert [(5, WHOLE)] == read({"path": ["7.png"], "id": torch.tensor([5]), "x": x([5])})
    assert [(7, WHOLE)] == read({"id": torch.tensor([0.5]), "path": ["7.png"], "x": x([7])})


@given(IDS, st.data())
@settings(max_examples=60, deadline=None)
def test_each_row_is_judged_for_itself(ids: list[int], data: st.DataObject) -> None:
    """In any batch exactly those rows are wrong that differ from what was written for their id."""
    others = data.draw(st.lists(st.integers(0, 2**53), min_size=len(ids), max_size=len(ids)))
    rows = x(others)
    expected = [(i, WHOLE if i == other else WRONG) for i, other in zip(ids, others, strict=True)]
    assert expected == read({"id": torch.tensor(ids), "x": rows})
    assert expected == read([{"id": i, "x": row} for i, row in zip(ids, rows, strict=True)])


@given(IDS, st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]))
@settings(max_examples=40, deadline=None)
def test_a_loader_may_change_the_precision(ids: list[int], kind: torch.dtype) -> None:
    """A sample in half precision is still that sample."""
    assert [(i, WHOLE) for i in ids] == read({"id": torch.tensor(ids), "x": x(ids).to(kind)})


def damaged(batch: Any, position: int, value: Any) -> Any:
    """A batch of rows with one element changed."""
    batch["x"][position, 3] = value
    return batch


@pytest.mark.parametrize(
    ("batch", "flags"),
    [
        (damaged({"id": torch.tensor(THREE), "x": x(THREE)}, 1, 0.01), [WHOLE, WRONG, WHOLE]),
        (damaged({"id": torch.tensor(THREE), "x": x(THREE)}, 1, torch.nan), [WHOLE, WRONG, WHOLE]),
        ({"id": torch.tensor(THREE), "x": x(THREE).flip(0)}, [WRONG, WHOLE, WRONG]),
        ({"id": torch.tensor(THREE), "x": torch.zeros(3, 8)}, [WRONG] * 3),
        ({"id": torch.tensor(THREE), "x": x(THREE)[:, :4]}, [WRONG] * 3),
        ({"id": torch.tensor(THREE), "x": x(THREE)[:2]}, [WHOLE, WHOLE, WRONG]),
        ({"id": torch.tensor(THREE), "x": [*x(THREE)[:2], torch.zeros(0)]}, [WHOLE, WHOLE, WRONG]),
        ({"id": torch.tensor(THREE), "x": [*x(THREE)[:2], "text"]}, [WHOLE, WHOLE, WRONG]),
        ({"id": torch.tensor(THREE), "x": "text"}, [WRONG] * 3),
        ({"id": torch.tensor(THREE), "x": (torch.zeros(3, 8) == 0)}, [WRONG] * 3),
    ],
)
def test_what_was_not_written_is_wrong(batch: Any, flags: list[int]) -> None:
    """A changed value, swapped rows, a cut or missing row, another type: none of it passes for the sample."""
    assert list(zip(THREE, flags, strict=True)) == read(batch)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ([None, None], [(-1, MARKED), (-1, MARKED)]),
        ([{"id": 5, "x": x([5])[0]}, None], [(5, WHOLE), (-1, MARKED)]),
        ([None, {"id": 5, "x": x([5])[0]}], [(-1, MARKED), (5, WHOLE)]),
        ([{"id": 5, "x": None}, {"id": 7, "x": x([7])[0]}], [(5, MARKED), (7, WHOLE)]),
        ({"id": torch.tensor([5, 7]), "x": None}, [(5, MARKED), (7, MARKED)]),
        ({"id": torch.tensor([5, 7]), "x": [None, x([7])[0]]}, [(5, MARKED), (7, WHOLE)]),
        (
            {"id": torch.tensor([5, 7]), "x": x([5, 7]), "missing": torch.tensor([True, False])},
            [(5, MARKED), (7, WHOLE)],
        ),
        ({"id": torch.tensor([5, 7]), "x": x([5, 7]), "valid": np.array([0, 1])}, [(5, MARKED), (7, WHOLE)]),
        ({"id": torch.tensor([-1, 7]), "x": x([0, 7])}, [(-1, MARKED), (7, WHOLE)]),
        (torch.tensor([-1, 7]), [(-1, MARKED), (7, UNCHECKED)]),
        ([-1, 7], [(-1, MARKED), (7, UNCHECKED)]),
        ((torch.tensor([-1, 7]), x([0, 7])), [(-1, MARKED), (7, WHOLE)]),
    ],
)
def test_a_missing_sample_may_be_marked(batch: Any, expected: list[tuple[int, int]]) -> None:
    """None, an id of -1, or a mask say that a sample is missing; the others stay what they are."""
    assert expected == read(batch)


@pytest.mark.parametrize("fault", [Nan(), EmptyTensor()])
def test_a_legal_oddity_is_whole_where_it_was_planned_and_wrong_elsewhere(fault: Any) -> None:
    """NaN and an empty tensor are good samples where the source gave them, and damage where it did not."""
    plan = FaultPlan({5: fault})
    pristine = {"id": 5, "x": x([5])[0]}
    odd = fault.strike(Read(5, lambda: dict(pristine), lambda: None, lambda: 0))["x"]
    rows = [odd, x([7])[0]]
    assert [(5, WHOLE), (7, WHOLE)] == read({"id": torch.tensor([5, 7]), "x": rows}, plan)
    assert [(5, WHOLE), (7, WHOLE)] == read([{"id": 5, "x": odd}, {"id": 7, "x": rows[1]}], plan)
    assert [(5, WRONG)] == read({"id": torch.tensor([5]), "x": x([5])}, plan)
    assert [(7, WRONG)] == read({"id": torch.tensor([7]), "x": [odd]}, plan)
    assert [(5, WRONG)] == read({"id": torch.tensor([5]), "x": [odd]})


def test_a_damaged_sample_is_known_by_its_content() -> None:
    """A null field that is delivered is marked, whatever the plan says."""
    assert [(5, MARKED)] == read([{"id": 5, "x": None}], FaultPlan({5: NullField()}))


@pytest.mark.parametrize("answer", [torch.tensor([5, 7]), [5, 7], np.array([5, 7]), (5, 7), ["5.png", "7.png"]])
def test_a_factory_can_say_where_the_ids_are(answer: Any) -> None:
    """``@loader(ids=…)`` goes first, for batches of any form; content is judged where it is found."""
    assert [(5, UNCHECKED), (7, UNCHECKED)] == read("a batch of its own", ids=lambda batch: answer)
    batch = {"name": ["b", "c"], "id": torch.tensor([1, 2]), "x": x([5, 0])}
    assert [(5, WHOLE), (7, WRONG)] == read(batch, ids=lambda batch: answer)


@pytest.mark.parametrize("answer", [None, [0.5], "no digits", {"id": 5}, object()])
def test_an_ids_function_that_gives_no_ids_is_reported(answer: Any) -> None:
    """A value that is not a sequence of whole numbers is refused with the name of the declaration."""
    with pytest.raises(UnreadableBatch, match=r"^@loader\(ids=…\) returned no sequence of whole numbers$"):
        read({"id": torch.tensor([1])}, ids=lambda batch: answer)


def test_a_source_on_disk_looks_names_up() -> None:
    """With a lookup, a sample's path means the id that the manifest gives it, and not its digits."""
    lookup = {"a/5.png": 3, "a/x.png": 4}.__getitem__
    assert [(3, UNCHECKED), (4, UNCHECKED)] == read({"path": ["a/5.png", "a/x.png"]}, lookup=lookup)


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        ({"x": x([5]), "label": 3}, "a mapping with the keys 'x', 'label'"),
        ({}, "a mapping with the keys "),
        ({"id": torch.tensor([0.5])}, "a mapping with the keys 'id'"),
        ({"id": [1, None]}, "a mapping with the keys 'id'"),
        ({"__key__": ["no digits"]}, "a mapping with the keys '__key__'"),
        ((x([5]), torch.tensor([5]), torch.tensor([1])), "a tuple of Tensor, Tensor, Tensor"),
        ((x([5]), x([5])), "a tuple of Tensor, Tensor"),
        (({"x": 1}, {"id": torch.tensor([5, 6])}), "a mapping with the keys 'x'"),
        ([object()], "a list of object"),
        (x([5, 6]), "a torch.Tensor"),
        ("no digits", "a builtins.str"),
        (None, "a builtins.NoneType"),
        (object(), "a builtins.object"),
    ],
)
def test_a_batch_without_ids_is_reported_in_one_clear_line(batch: Any, what: str) -> None:
    """The line says what came, and how the ids can be given."""
    with pytest.raises(UnreadableBatch) as caught:
        read(batch)
    assert (
        f"no sample ids found in {what}; give the batch a key or attribute named one of id, ids, __key__, index, path, "
        "or declare @loader(ids=lambda batch: …)"
    ) == str(caught.value)


@given(IDS)
@settings(max_examples=60, deadline=None)
def test_rows_depend_only_on_their_ids(ids: list[int]) -> None:
    """A row depends only on its id, is exact in single precision, and is within -0.5…0.5."""
    rows = identity.rows(ids)
    assert (len(ids), identity.WIDTH) == rows.shape
    assert np.float32 == rows.dtype
    assert bool(np.all((rows >= -0.5) & (rows < 0.5)))
    assert bool(np.all(rows * 2**24 == np.round(rows.astype(np.float64) * 2**24)))
    np.testing.assert_array_equal(rows, np.concatenate([identity.rows([sample]) for sample in ids]))
    assert identity.intact(ids, rows).all()


def test_rows_are_the_same_on_every_platform() -> None:
    """The numbers are fixed: those of splitmix64, which begins with 0xE220A8397B1DCDAF from seed 0."""
    assert np.float32((0xE220A8397B1DCDAF >> 40) / 2**24 - 0.5) == identity.rows([0])[0, 0]
    assert (0, identity.WIDTH) == identity.rows([]).shape


@given(st.integers(0, 2**53), st.integers(0, 2**53))
@settings(max_examples=60, deadline=None)
def test_no_two_samples_look_alike(one: int, other: int) -> None:
    """A row is intact for its own id and for no other."""
    assert [one == other] == identity.intact([one], identity.rows([other])).tolist()


def test_no_two_of_many_samples_look_alike() -> None:
    """Among two hundred thousand samples no two agree even in the first two of their eight numbers."""
    rows = identity.rows(np.arange(200_000))[:, :2]
    order = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    assert not np.any(np.all(order[1:] == order[:-1], axis=1))


@given(IDS, st.data())
@settings(max_examples=60, deadline=None)
def test_any_change_beyond_rounding_is_seen(ids: list[int], data: st.DataObject) -> None:
    """One number that is off by more than half precision makes its row, and no other, not intact; NaN is never equal."""
    rows = identity.rows(ids).astype(np.float64)
    row = data.draw(st.integers(0, len(ids) - 1))
    column = data.draw(st.integers(0, identity.WIDTH - 1))
    change = data.draw(st.sampled_from([np.nan, np.inf, 1.0, 0.0011, -0.0011]))
    rows[row, column] += change
    assert [position != row for position in range(len(ids))] == identity.intact(ids, rows).tolist()


@pytest.mark.parametrize("shape", [(2, 8), (3, 7), (3,), (3, 8, 1)])
def test_rows_of_another_shape_are_not_intact(shape: tuple[int, ...]) -> None:
    """Fewer rows, narrower rows, no rows: none of the three samples is there."""
    assert [False] * 3 == identity.intact(THREE, np.zeros(shape)).tolist()
