"""What a struck read raises or returns is what the fault says, for samples of many shapes; the source's stay good."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import importlib
import os
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import torch
from badbatch.harness.errors import UserError
from badbatch.harness.faults import Effect, Fault, Read
from badbatch.harness.faults.errno import FAILING_CALLS, Errno
from badbatch.harness.faults.keyword_only_error import KeywordOnlyError, RaiseKeywordOnlyError
from badbatch.harness.faults.nan import Nan
from badbatch.harness.faults.ragged_window import RaggedWindow
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.two_argument_error import RaiseTwoArgumentError, TwoArgumentError
from badbatch.harness.faults.unpicklable_error import RaiseUnpicklableError
from badbatch.harness.plan import FaultPlan
from badbatch.harness.strategies import faults, read_faults
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.timeout(60)
linux = pytest.mark.skipif(sys.platform != "linux", reason="the calls that fail for everyone are Linux's")
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy


def good_sample() -> dict[str, Any]:
    return {"id": 5, "x": torch.arange(8, dtype=torch.float32) + 1}


def is_good(sample: Any) -> bool:
    good = good_sample()
    return set(sample) == set(good) and bool(sample["id"] == good["id"]) and torch.equal(sample["x"], good["x"])


def read_of(
    value: Any, tell: Callable[[str], None] = lambda word: None, attempt: Callable[[], int] = lambda: 0
) -> Read:
    return Read(sample=5, value=lambda: value, took_hold=lambda: tell("held"), attempt=attempt)


@unhurried
@given(fault=faults(effects={Effect.ERROR, Effect.VALUE, Effect.LEGAL, Effect.UNPICKLABLE, Effect.TRANSIENT}))
def test_does_not_change_the_source(fault: Fault) -> None:
    """A read with a fault returns a damaged copy: the source's own sample stays good, so a read without a fault returns it."""
    mine, words = good_sample(), list[str]()
    outcome: Any = None
    with contextlib.suppress(Exception):
        outcome = fault.strike(read_of(mine, words.append))
    assert words == ["held"]
    assert outcome is not mine
    assert is_good(mine)
    assert mine["x"].is_contiguous()


@pytest.mark.parametrize("failures", [1, 3])
def test_transient_heals(failures: int) -> None:
    """The first reads fail, exactly as many as declared, and later ones succeed; only those that fail count as faults."""
    words: list[str] = []
    earlier = iter(range(10))
    read = read_of(good_sample(), words.append, lambda: next(earlier))
    for _ in range(failures):
        with pytest.raises(OSError, match="sample 5"):
            Transient(failures).strike(read)
    assert is_good(Transient(failures).strike(read))
    assert is_good(Transient(failures).strike(read))
    assert words == ["held"] * failures


@pytest.mark.parametrize("name", FAILING_CALLS)
def test_errno_is_the_requested_one(name: str) -> None:
    """The read raises the ``OSError`` of that number, which names the sample, and leaves no descriptor open."""
    number: int = getattr(errno, name)
    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match="sample 5") as raised:
        Errno(name).strike(read_of(good_sample()))  # type: ignore[arg-type]
    assert raised.value.errno == number
    assert raised.value.strerror == os.strerror(number)
    assert type(raised.value) is type(OSError(number, ""))
    assert psutil.Process().num_fds() == before


@linux
@pytest.mark.parametrize("name", FAILING_CALLS)
def test_errno_comes_from_the_system(name: str) -> None:
    """On Linux the error of each kind comes from a system call that really fails so."""
    if name == "ESTALE" and os.geteuid() != 0:
        pytest.skip("only root may open files by handle")
    with pytest.raises(OSError, match=os.strerror(getattr(errno, name))) as raised:
        FAILING_CALLS[name]()
    assert raised.value.errno == getattr(errno, name)


@pytest.mark.parametrize("call", ["succeeds", "fails otherwise"])
def test_errno_is_built_where_no_call_fails_so(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system call succeeds, or fails in another way, the named error is raised anyway."""

    def stand_in() -> None:
        if call == "fails otherwise":
            raise FileNotFoundError(errno.ENOENT, "no such file", "/proc/self/mem")

    monkeypatch.setitem(FAILING_CALLS, "EIO", stand_in)
    with pytest.raises(OSError, match="sample 5") as raised:
        Errno("EIO").strike(read_of(good_sample()))
    assert raised.value.errno == errno.EIO


@pytest.mark.parametrize(
    ("fault", "cls"), [(RaiseTwoArgumentError(), TwoArgumentError), (RaiseKeywordOnlyError(), KeywordOnlyError)]
)
def test_errors_that_a_message_cannot_rebuild(fault: Fault, cls: type[Exception]) -> None:
    """These importable errors can be rebuilt neither from their class and message nor by pickle."""
    with pytest.raises(cls, match="sample 5 cannot be read") as raised:
        fault.strike(read_of(good_sample()))
    assert getattr(importlib.import_module(cls.__module__), cls.__name__) is cls
    with pytest.raises(TypeError, match="argument"):
        cls(str(raised.value))
    with pytest.raises(TypeError, match="argument"):
        pickle.loads(pickle.dumps(raised.value))


def test_error_that_cannot_be_pickled() -> None:
    """The unpicklable error is raised unchanged, and pickling it fails."""
    with pytest.raises(Exception, match="sample 5 cannot be read") as raised:
        RaiseUnpicklableError().strike(read_of(good_sample()))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(raised.value)


def test_raise_takes_any_class() -> None:
    """``raise`` raises the class that it was given, with the sample in its message."""
    with pytest.raises(UserError, match="sample 5: no"):
        Raise("badbatch.harness.errors.UserError", "sample {sample}: no").strike(read_of(good_sample()))


def test_reading_a_stored_raise_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class that a stored plan names is imported when the fault strikes, and not when the plan is read."""
    (tmp_path / "foreign_library.py").write_text("class Foreign(Exception): pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    plan = FaultPlan.from_json({"5": {"fault": "raise", "error": "foreign_library.Foreign"}})
    assert "foreign_library" not in sys.modules
    assert FaultPlan.from_json(plan.to_json()) == plan
    with pytest.raises(Exception, match="sample 5 cannot be read") as raised:
        plan[5].strike(read_of(good_sample()))
    assert type(raised.value).__name__ == "Foreign"
    del sys.modules["foreign_library"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing_library.Error", "'missing_library.Error' cannot be imported: No module named 'missing_library'"),
        ("json.loads", "'json.loads' is no exception class"),
        ("json.JSONDecodeError", "'json.JSONDecodeError' cannot be raised with one message"),
    ],
)
def test_a_raise_of_a_class_that_is_not_there_does_not_take_hold(name: str, words: str) -> None:
    """It can be read and judged. When it should act it says what is wrong, and does not report an effect."""
    held: list[int] = []
    read = dataclasses.replace(read_of(good_sample()), took_hold=lambda: held.append(1))
    with pytest.raises(ValueError, match=re.escape(words)):
        Raise(name).strike(read)
    assert held == []


class Pair(NamedTuple):
    """A sample as some data sets have it."""

    id: int
    x: torch.Tensor


@pytest.mark.parametrize("kind", ["null-field", "ragged-window", "nan", "empty-tensor"])
@pytest.mark.parametrize("shape", ["dict", "tuple", "list", "named tuple", "numpy", "list field", "tuple field"])
def test_field_faults_fit_many_samples(kind: str, shape: str) -> None:
    """A field is damaged as declared, in mappings, tuples and lists, for tensors, arrays and sequences; the rest stays."""
    x = good_sample()["x"]
    fields: dict[str, Any] = {"numpy": x.numpy(), "list field": x.tolist(), "tuple field": tuple(x.tolist())}
    samples = {"tuple": (5, x), "list": [5, x], "named tuple": Pair(5, x)}
    sample = samples.get(shape, {"id": 5, "x": fields.get(shape, x)})
    before = copy.deepcopy(sample)
    damaged: Any = read_faults()[kind]().strike(read_of(sample))
    assert type(damaged) is type(sample)
    assert repr(sample) == repr(before)
    whole, field = (damaged["id"], damaged["x"]) if isinstance(damaged, dict) else damaged
    assert whole == 5
    if kind == "null-field":
        assert field is None
        return
    assert type(field) is type(fields.get(shape, x))
    entries = torch.as_tensor(field, dtype=torch.float32)
    expected = {
        "ragged-window": torch.arange(1.0, 6.0),
        "nan": torch.tensor([torch.nan, 2, 3, 4, 5, 6, 7, 8]),
        "empty-tensor": torch.zeros(0),
    }
    torch.testing.assert_close(entries, expected[kind], equal_nan=True)


def test_ragged_window_repeats_what_is_short() -> None:
    """A window that must be longer than its correct width is repeated from its start."""
    damaged = RaggedWindow(width=10).strike(read_of(good_sample()))
    assert damaged["x"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]


def test_nan_in_a_matrix() -> None:
    """The position counts over the field laid flat, also where its rows do not follow each other in memory."""
    matrix = torch.arange(6.0).reshape(2, 3).T
    damaged = Nan(position=3).strike(read_of({"x": matrix}))
    assert damaged["x"].isnan().nonzero().tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("kind", "sample", "words"),
    [
        ("null-field", {"image": 1}, "no field 'x' to damage; its fields are 'image'"),
        ("null-field", 5, "an int, which has no field 'x'"),
        ("nan", (5, "text"), "needs a tensor, an array or a sequence, not an int"),
        ("nan", {"x": torch.arange(3)}, "needs a field of floating-point numbers"),
        ("nan", {"x": torch.arange(3).numpy()}, "needs a field of floating-point numbers"),
        ("nan", {"x": torch.zeros(0)}, "position 0 of a field of 0 entries"),
        ("ragged-window", {"x": torch.zeros(5)}, "cannot give a field of 5 entries a wrong width of 5"),
        ("ragged-window", {"x": torch.tensor(5.0)}, "needs a tensor, an array or a sequence"),
        ("empty-tensor", {"x": "text"}, "needs a tensor, an array or a sequence, not a str"),
        ("unpicklable-sample", None, "a NoneType cannot be made unpicklable"),
    ],
)
def test_what_cannot_be_damaged_says_so(kind: str, sample: Any, words: str) -> None:
    """A fault that does not fit the sample says so clearly, and never reports an effect."""
    told: list[str] = []
    with pytest.raises(TypeError, match=words):
        read_faults()[kind]().strike(read_of(sample, told.append))
    assert told == []
